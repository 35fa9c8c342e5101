"""The first link: real children, by weighted least squares that keeps sums, signs and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from trellis.errors import SpecError
from trellis.estimate.histograms.family.bounds import stack_bounds
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution, SolveStatus
from trellis.model.results.histogram_estimates import FIT_TOLERANCE
from trellis.numerics.histograms.least_squares import accelerated
from trellis.numerics.histograms.least_squares.solver import distance, solve

TOLERANCE = FIT_TOLERANCE
"""That large families are solved to."""

MOST_ITERATIONS = 50_000

STATUS = {
    accelerated.SOLVED: SolveStatus.SOLVED,
    accelerated.STALLED: SolveStatus.STALLED,
    accelerated.VIOLATED: SolveStatus.VIOLATED,
}


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Real counts that fit the problem's objective best.

    `tolerance` is a root mean square distance to the optimum, in counts.
    """

    tolerance: float = TOLERANCE
    most_iterations: int = MOST_ITERATIONS

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        objective, active = problem.objective, problem.active
        assert objective is not None
        problem.check_cells()
        if problem.is_root and not active.size:  # its exact total is 0
            return _nothing(problem)
        stack = objective.prepared.tree.restrict(active)
        sums = problem.totals
        rows = stack_bounds(objective.prepared, problem.bounds, stack, sums, active)
        if not active.size:
            return _nothing(problem)
        quadratic, mu, x = objective.quadratic(
            stack, active, problem.nodes.start, problem.nodes.stop
        )
        if mu <= 0 and problem.is_root:
            raise SpecError(
                f"No measurement that method topdown may use on level {problem.level!r} tells all "
                "cells apart. Measure the detailed query there, or use gls_topdown."
            )
        if not sums.all():
            # A cell that the parent lacks is blocked for all children, and has no sum to keep.
            sums[sums == 0] = inf
        found = solve(
            stack, quadratic, sums, problem.blocked, rows, mu, self.tolerance,
            self.most_iterations, x,
        )  # fmt: skip
        violated = found.status == accelerated.VIOLATED
        certified = inf if violated else distance(found, mu, x.size, quadratic)
        return FamilySolution(
            active, x, STATUS[found.status], certified, not violated, found.violation,
            found.iterations,
        )  # fmt: skip


def _nothing(problem: FamilyProblem) -> FamilySolution:
    x = np.zeros((0, problem.n_children))
    return FamilySolution(problem.active, x, SolveStatus.SOLVED, 0.0, True)
