"""The children that were found for a family, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query


class SolveStatus(Enum):
    """How the real counts were fitted."""

    SOLVED = auto()
    """To the tolerance that was asked for."""
    STALLED = auto()
    """Less well; the distance says how well."""
    VIOLATED = auto()
    """They miss a bound, and nothing is certified: whole counts may still keep all bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilySolution:
    """Real counts and, once rounded, whole ones: cells x children.

    `distance` is a certified bound of the root mean square, over all children and all cells that
    the parent has, of the real counts' distance to the best ones. If no query separates the cells,
    the optimum is not unique, and the bound is on measured answers. Under bounds it holds for right
    sides moved by `violation`, which the solver measured. `keeps_bounds` is what the last link
    claims of `counts`.
    """

    cells: Ints
    real: Floats
    status: SolveStatus
    distance: float
    keeps_bounds: bool
    violation: float = 0.0
    iterations: int = 0
    whole: Ints | None = None

    @property
    def counts(self) -> NDArray:
        """Whole counts if there are any."""
        return self.real if self.whole is None else self.whole

    @property
    def children(self) -> NDArray:
        """The counts as children x cells."""
        return self.counts.T

    def rounded(self, whole: Ints, *, keeps_bounds: bool) -> FamilySolution:
        return FamilySolution(
            self.cells, self.real, self.status, self.distance, keeps_bounds, self.violation,
            self.iterations, whole,
        )  # fmt: skip

    def on_all_cells(self, n_cells: int) -> FamilySolution:
        """Real counts of all cells of the schema; those that the parent lacks are 0."""
        real = np.zeros((n_cells, self.real.shape[1]))
        real[self.cells] = self.real
        return replace(self, cells=np.arange(n_cells), real=real)

    # -- measured here, not reported by a link ----------------------------------------------------

    def sum_residual(self, problem: FamilyProblem) -> float:
        """The largest gap between the sum of the children and their parent; a root has none."""
        if problem.parent is None:
            return 0.0
        return float(np.abs(self.counts.sum(axis=1) - problem.parent).max(initial=0))

    def bound_violation(self, problem: FamilyProblem) -> float:
        """By how much counts miss a bound, are negative, or stand where none may be."""
        worst = float((-self.counts).max(initial=0))
        if problem.impossible is not None:
            marks = np.broadcast_to(problem.impossible, self._shape(problem))[:, self.cells]
            worst = max(worst, float(self.counts[marks.T].max(initial=0)))
        for bound in problem.bounds:
            answers = self._answers(problem.queries[bound.query], bound)
            missed = np.maximum(bound.lower - answers, answers - bound.upper)
            worst = max(worst, float(missed.max(initial=0)))
        return worst

    def _shape(self, problem: FamilyProblem) -> tuple[int, int]:
        assert problem.impossible is not None
        return self.counts.shape[1], problem.impossible.shape[-1]

    def _answers(self, query: Query, bound: FamilyBound) -> Floats:
        """Children, or groups of children, x cells of the query."""
        answers = np.zeros((query.n_cells, self.counts.shape[1]))
        np.add.at(answers, query.cell_of[self.cells], self.counts)
        if bound.group_of is None:
            return answers.T
        member, sums = bound.group_of >= 0, np.zeros(bound.lower.shape)
        np.add.at(sums, bound.group_of[member], answers.T[member])
        return sums
