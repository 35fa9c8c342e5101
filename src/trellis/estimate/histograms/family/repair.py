"""Whole counts that keep all bounds, near those that rounding made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.model.arrays import Ints
from trellis.numerics.histograms.whole_numbers.exchange import exchange
from trellis.numerics.histograms.whole_numbers.nearest_whole import nearest_whole
from trellis.numerics.histograms.whole_numbers.repair import repair
from trellis.numerics.histograms.whole_numbers.weighted_queries import residuals
from trellis.numerics.histograms.whole_numbers.whole_bounds import answers

MOST_EXCHANGED = 2_000_000
"""Cells x children x children up to which pairs of children exchange units under constraints."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Moves units between children until bounds are kept; an integer program where that fails."""

    inner: FamilySolver

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        if not problem.bounds:
            return found
        x, y = found.real, _whole(found)
        bounds, queries, blocked = problem.whole_bounds, problem.weighted, problem.blocked
        e = residuals(queries, x, y)
        if not repair(bounds, queries, e, blocked, y):
            nearest = nearest_whole(x, problem.parent, bounds, blocked)
            if nearest is None:
                raise Infeasible("No whole counts of the children keep all constraints.")
            y = nearest
            e = residuals(queries, x, y)
        if x.size * x.shape[1] <= MOST_EXCHANGED:
            exchange(bounds, queries, e, x, blocked, y)
        assert _keeps_bounds(problem, y)
        return found.rounded(y, keeps_bounds=True)


@dataclass(frozen=True, slots=True)
class RepairRoot:
    """The nearest whole counts of a root that keep its bounds, by an integer program."""

    inner: FamilySolver

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        if not problem.bounds:
            return found
        y = _whole(found)
        if not _keeps_bounds(problem, y):
            nowhere = np.zeros((0, 0), dtype=bool)
            nearest = nearest_whole(found.real, None, problem.whole_bounds, nowhere)
            if nearest is None:
                raise Infeasible("No whole counts keep all constraints.")
            y = nearest
        return found.rounded(y, keeps_bounds=True)


def _whole(found: FamilySolution) -> Ints:
    assert found.whole is not None
    return found.whole


def _keeps_bounds(problem: FamilyProblem, y: Ints) -> bool:
    bounds = problem.whole_bounds
    kept = answers(bounds, y)
    return bool(((bounds.lower <= kept) & (kept <= bounds.upper)).all())
