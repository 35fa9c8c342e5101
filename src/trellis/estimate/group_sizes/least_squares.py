"""The exact whole-number least squares on a hierarchy, with checked input."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.estimate.group_sizes import checks
from trellis.estimate.group_sizes.measured_levels import MeasuredLevels
from trellis.model import Hierarchy
from trellis.model.arrays import Ints
from trellis.numerics.group_sizes.integer_optimum import cheapest_units, units_worth_having
from trellis.numerics.group_sizes.pruned_forest import TreeShape
from trellis.numerics.projection.equal_weights import project_whole
from trellis.numerics.ties import tie_key


def solve(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    total: int | None = None,
    weights: Sequence[checks.Weight] | None = None,
    *,
    tie_seed: int = 0,
) -> list[Ints]:
    r"""Whole counts of groups by size that add up over areas, nearest to the noisy ones.

        minimise   sum over levels l, areas r, sizes s of weights_l (n_rs - noisy_rs)^2
        over       whole n >= 0 with n_parent = sum of n_child for each size,
                   and sum_s n_root,s = total, unless that is None.

    `noisy` holds one array of whole numbers per level, areas x sizes, root first; so does the
    answer. The minimum is exact, whatever the depth. A weight of 0 marks a level that was not
    measured, whose table is not read; the last level needs a positive one. Ties are broken at
    random from the published `tie_seed`, the same way each time.

    Reference: Fioretto, Van Hentenryck and Zhu, Artificial Intelligence 2021, arXiv:2006.15673. In
    the conference version (H2) asks every region for all G groups, which contradicts (H3) as soon
    as there are two regions; the total binds at the root.
    """
    checked = checks.noisy_tables(hierarchy, noisy)
    exact = checks.level_weights(hierarchy, weights)
    total = None if total is None else checks.total_groups(total)
    return least_squares(hierarchy, checked, total, exact, tie_seed)


def least_squares(
    hierarchy: Hierarchy,
    noisy: checks.NoisyTables,
    total: int | None,
    weights: Sequence[Fraction],
    tie_seed: int,
) -> list[Ints]:
    """`solve` for arguments that have been checked."""
    if noisy.n_columns == 0:
        if total:
            raise StructureError("There are groups but no sizes. Declare at least one size.")
        return [np.zeros_like(table) for table in noisy.tables]
    levels = MeasuredLevels(hierarchy, tuple(i for i, weight in enumerate(weights) if weight))
    measured = [noisy.tables[level] for level in levels.kept]
    largest = [noisy.largest[level] for level in levels.kept]
    whole = checks.whole_weights([w for w in weights if w], largest, total or 0)
    key = tie_key(tie_seed)
    if len(measured) == 1:
        return levels.fill([_one_level(measured[0], total, key)])
    shape = _tree_shape(levels, whole)
    rows = measured[0] if len(measured) == 2 else np.concatenate(measured[:-1])
    if total is None:
        total = units_worth_having(shape, rows, measured[-1], odd=int(key) & 1)
    out_rows, out_leaves = cheapest_units(shape, rows, measured[-1], total, key)
    return levels.fill([*np.split(out_rows, shape.level_start[1:-1]), out_leaves])


def _tree_shape(levels: MeasuredLevels, weights: Sequence[int]) -> TreeShape:
    row_start, pointers = levels.row_start[:-1], []
    for position in range(len(levels.kept) - 1):
        # Children are rows of the stacked levels; leaves are counted from 0.
        offset = row_start[position + 1] if position + 2 < len(levels.kept) else 0
        pointers.append(levels.child_start(position) + offset)
    return TreeShape(
        row_start,
        np.concatenate([pointer[:-1] for pointer in pointers]),
        np.concatenate([pointer[1:] for pointer in pointers]),
        np.repeat(np.array(weights[:-1], dtype=np.int64), levels.sizes[:-1]),
        weights[-1],
    )


def _one_level(table: Ints, total: int | None, key: np.uint64) -> Ints:
    """Without a tree every cell stands alone."""
    if total is None:
        return np.maximum(table, 0)
    out = np.empty_like(table)
    all_cells, totals = np.array([0, table.size]), np.array([total])
    project_whole(table.ravel(), all_cells, totals, key, 0, out.ravel(), 0, 1)
    return out
