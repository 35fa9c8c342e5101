"""Children hold only what can be shared out below them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.model.arrays import Ints
from trellis.numerics.feasibility.feasible_below import FeasibleBelow


@dataclass(frozen=True, slots=True)
class HoldBelow:
    """Solves a family again, held to the nearest counts that can be, if constraints below need it.

    `level` is that of the children.
    """

    inner: FamilySolver
    below: FeasibleBelow
    level: int

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        held = self._held(problem, found)
        return found if held is None else self.inner.solve(problem.with_bounds([held]))

    def _held(self, problem: FamilyProblem, found: FamilySolution) -> FamilyBound | None:
        """Counts by kind that siblings can share out below them; None if theirs are such."""
        first, last = problem.nodes.start, problem.nodes.stop
        asks = np.flatnonzero(self.below.asks[self.level][first:last]).tolist()
        if not asks:
            return None
        kinds = self._kinds(found)
        if all(self.below.can_hold(self.level, first + child, kinds[child]) for child in asks):
            return None
        parent = None if problem.is_root else kinds.sum(axis=0)
        near = self.below.nearest(self.level, first, last, kinds, parent)
        if near is None:
            raise Infeasible("no whole counts keep the constraints on it and on all below it.")
        fixed = near.astype(np.float64)
        return FamilyBound(self.below.kinds.name, fixed, fixed)

    def _kinds(self, found: FamilySolution) -> Ints:
        """Children x kinds."""
        kinds = self.below.kinds
        out = np.zeros((kinds.n_cells, found.counts.shape[1]), dtype=np.int64)
        np.add.at(out, kinds.cell_of[found.cells], found.counts)
        return out.T
