"""Joint least squares of cumulative counts on a hierarchy, for checked input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trellis.estimate.group_sizes.measured_levels import MeasuredLevels
from trellis.execution.executor import in_threads, map_kernel
from trellis.model import Hierarchy
from trellis.model.arrays import Floats, Ints
from trellis.numerics.group_sizes.monotone_least_squares import joint_fit, tree_coefficients

TOLERANCE = 0.5
"""Groups; the answers of the two halves of the method then differ by no more than rounding does."""

MOST_ROUNDS = 300
"""Large noise takes a hundred. Further ones change little, and L1 errors not for the better."""


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeFit:
    """Real cumulative counts of each level, areas x (sizes - 1), root first.

    `adding_up` adds up over areas, `monotone` grows with size within 0 .. G; at the optimum they
    are one, and here they differ by at most `gap`.
    """

    adding_up: list[Floats]
    monotone: list[Floats]
    gap: float
    rounds: int


def fit_cumulative(
    hierarchy: Hierarchy,
    tables: Sequence[Ints],
    groups: Ints,
    weights: Sequence[Fraction],
    tolerance: float = TOLERANCE,
    most_rounds: int = MOST_ROUNDS,
    workers: int | None = 1,
) -> CumulativeFit:
    """Least squares over cumulative counts that add up, grow with size and end at `groups`.

    Levels of weight 0 are not read; they are filled with sums.
    """
    levels = MeasuredLevels(hierarchy, tuple(i for i, weight in enumerate(weights) if weight))
    heaviest = max(weights)  # the optimum depends on ratios alone
    weight = [float(w / heaviest) for w in weights if w]
    with in_threads(workers):
        fit = joint_fit(
            tree_coefficients(*_children_of_rows(levels), np.repeat(weight, levels.sizes)),
            levels.stack(tables).astype(np.float64),
            levels.stack(hierarchy.sum_up(groups)).astype(np.float64),
            tolerance,
            most_rounds,
            map_kernel,
        )
    adding_up, monotone = (levels.fill(levels.split(x)) for x in (fit.adding_up, fit.monotone))
    return CumulativeFit(adding_up, monotone, fit.gap, fit.rounds)


def _children_of_rows(levels: MeasuredLevels) -> tuple[Ints, Ints]:
    """First and end of the children of each row of the stacked levels; 0 for leaves."""
    row_start = levels.row_start
    first, end = np.zeros(row_start[-1], np.int64), np.zeros(row_start[-1], np.int64)
    for position in range(len(levels.kept) - 1):
        rows = slice(row_start[position], row_start[position + 1])
        pointer = levels.child_start(position) + row_start[position + 1]
        first[rows], end[rows] = pointer[:-1], pointer[1:]
    return first, end
