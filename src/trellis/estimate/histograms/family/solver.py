"""The protocol of all links of the chain that fits a family."""

from __future__ import annotations

from typing import Protocol

from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution


class FamilySolver(Protocol):
    """Fits the children of one parent. Stateless, so that any executor may map it.

    Every link keeps one contract, which a test holds all of them to:

    - sums kept: the children add up to their parent in every cell;
    - bounds kept: a solution that claims to keep them does;
    - status honest: no real counts are farther from the best ones than `distance`.

    A link may reuse the arrays of the solution that it gets from the link inside it. Raises
    `Infeasible` if no counts can keep the bounds.
    """

    def solve(self, problem: FamilyProblem) -> FamilySolution: ...
