"""Whole counts near real ones: largest remainders first, then swaps that keep answers near.

Bounds may be missed by some units; `repair` sees to that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.numerics.histograms.whole_numbers.rounding import round_cells, round_single
from trellis.numerics.histograms.whole_numbers.swaps import swap_units
from trellis.numerics.ties import tie_key


@dataclass(frozen=True, slots=True)
class Round:
    """Whole children that add up to their parent in every cell."""

    inner: FamilySolver
    tie_seed: int

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        x, y = found.real, np.zeros(found.real.shape, dtype=np.int64)
        round_cells(x, problem.parent, tie_key(self.tie_seed), problem.first_index, y)
        floors = np.minimum(np.floor(x + 1e-9).astype(np.int64), y)
        if problem.weighted.weight.size:
            swap_units(problem.weighted, x, floors, problem.blocked, y)
        return found.rounded(y, keeps_bounds=not problem.bounds)


@dataclass(frozen=True, slots=True)
class RoundRoot:
    """The whole counts of a root: its total by rounding, cells by remainders and swaps."""

    inner: FamilySolver
    tie_seed: int

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        y = round_single(problem.weighted, found.real[:, 0], tie_key(self.tie_seed))
        return found.rounded(y[:, np.newaxis], keeps_bounds=not problem.bounds)
