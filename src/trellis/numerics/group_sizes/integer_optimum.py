r"""The exact whole-number least squares of the histogram mechanism, for trees of any depth.

    minimise   sum over nodes r and sizes s of w_r (n_rs - y_rs)^2
    over       whole n >= 0 with n_parent = sum of n_child for each size, and sum_s n_root,s = G.

The trees of the sizes share nothing but G. A tree's least cost is convex in its root's count, so
the optimum buys the G cheapest units of all trees together (`unit_prices`). One price mu divides
those bought from the others; going down, each node finds the price at which its children stop.
What is left over at the stopping price is a tie: one unit more or less for some of the children,
at equal cost. The least priorities of `ties` win.

The price is first guessed from a sample of sizes, so that only leaves in reach are looked at
(`pruned_forest`). Too low a guess is found out, since the units up to it do not add up to G, and
is raised; the answer never depends on it.

The program is that of Fioretto, Van Hentenryck and Zhu, Artificial Intelligence 2021,
arXiv:2006.15673, who solve it with tables of costs on a window around each noisy count. That gives
the same answer if the windows hold it, in time that grows with the variance of the noise.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.model.arrays import Ints
from trellis.numerics.group_sizes.pruned_forest import TOP, PrunedForest, TreeShape, prune
from trellis.numerics.group_sizes.unit_prices import (
    NO_PRICE,
    PRICE_LIMIT,
    Frames,
    Nodes,
    units_up_to,
)
from trellis.numerics.ties import kth_least, priority

MOST_SAMPLED = 32
SIZES_PER_SAMPLED = 10
FEWEST_SIZES = 64
"""With fewer sizes all leaves are taken in: a sample would cost too much or say too little."""

RAISES = 3
"""After this many guesses that were too low every leaf is taken in."""


def cheapest_units(
    shape: TreeShape,
    rows: Ints,
    leaves: Ints,
    total: int,
    key: np.uint64,
    guess: int | None = None,
) -> tuple[Ints, Ints]:
    """The optimum for rows and leaves, both nodes x sizes. The caller has checked the range."""
    out_rows, out_leaves = np.zeros_like(rows), np.zeros_like(leaves)
    if total > 0:
        limit = guessed_price(shape, rows, leaves, total) if guess is None else guess
        forest = _affording(shape, rows, leaves, total, limit)
        _hand_down(
            forest.nodes, forest.joins, forest.before, forest.leaf_row, forest.leaf_value,
            forest.leaf_weight, forest.frames, total, key, out_rows, out_leaves,
        )  # fmt: skip
    return out_rows, out_leaves


def units_worth_having(shape: TreeShape, rows: Ints, leaves: Ints, odd: int) -> int:
    """The total when none is prescribed: all units of negative price and half of those of price 0.

    Units of price 0 change no cost; taking half of them favours neither side. Of an odd number
    the middle one is taken if `odd` is 1.
    """
    forest = prune(shape, rows, leaves, 0, PRICE_LIMIT)
    least, _ = _units_at(forest, -1)
    most, _ = _units_at(forest, 0)
    return least + (most - least + odd) // 2


def guessed_price(shape: TreeShape, rows: Ints, leaves: Ints, total: int) -> int:
    """A price that `total` units are likely to stay below, from some of the sizes.

    Counts of sizes differ by orders of magnitude, but what the fit adds to or takes from the
    noisy root counts does not: sizes spread evenly over the ranks of these counts stand for all.
    """
    n_sizes = rows.shape[1]
    if n_sizes < FEWEST_SIZES:
        return PRICE_LIMIT
    n_sampled = min(n_sizes // SIZES_PER_SAMPLED, MOST_SAMPLED)
    counts = rows[: shape.level_start[1]].sum(axis=0)
    ranks = (np.arange(n_sampled) * n_sizes + n_sizes // 2) // n_sampled
    sampled = np.argsort(counts, kind="stable")[ranks]
    missing = (total - int(counts.sum())) * n_sampled // n_sizes
    wanted = max(1, int(counts[sampled].sum()) + missing)
    sampled_rows = np.ascontiguousarray(rows[:, sampled])
    sampled_leaves = np.ascontiguousarray(leaves[:, sampled])
    for limit in (0, PRICE_LIMIT):
        forest = prune(shape, sampled_rows, sampled_leaves, limit, PRICE_LIMIT)
        if _units_at(forest, limit)[0] >= wanted:
            break
    units, price, slope = _price_of(forest, wanted, sampled.size)
    # Neighbours in rank are alike, so their differences measure what the sample leaves open.
    steps = np.diff((units - counts[sampled]).astype(np.float64))
    spread = sqrt(float(np.sum(steps**2)) / 2)
    return min(price + 1 + ceil(2 * spread / max(slope, 1e-9)), PRICE_LIMIT)


def _affording(shape: TreeShape, rows: Ints, leaves: Ints, total: int, limit: int) -> PrunedForest:
    """A forest with at least `total` units up to its limit, which is raised if need be."""
    for _ in range(RAISES):
        forest = prune(shape, rows, leaves, limit, total)
        units, slope = _units_at(forest, limit)
        if units >= total:
            return forest
        rise = 2 * (total - units) / max(slope, 1e-9)
        limit = int(min(limit + 1 + rise, PRICE_LIMIT))
    return prune(shape, rows, leaves, PRICE_LIMIT, total)


def _units_at(forest: PrunedForest, price: int) -> tuple[int, float]:
    """Units of all trees up to `price`, and their slope."""
    return _units_of_trees(
        forest.nodes, forest.joins, forest.before, forest.leaf_weight, forest.frames, price,
        np.empty(0, np.int64),
    )  # fmt: skip


def _price_of(forest: PrunedForest, wanted: int, n_sizes: int) -> tuple[Ints, int, float]:
    """Units of each size when `wanted` of all are bought, the price of the last, the slope."""
    arrays = forest.nodes, forest.joins, forest.before, forest.leaf_weight, forest.frames
    _, price, _, _ = units_up_to(*arrays, TOP, 0, wanted)
    units = np.zeros(n_sizes, np.int64)
    _, slope = _units_of_trees(*arrays, price, units)
    return units, price, slope


# -- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def extremes(table: Ints) -> tuple[int, int]:
    """The least and the largest value, or 0 if that is beyond, in one pass."""
    least, largest = 0, 0
    for value in table.ravel():
        least, largest = min(least, int(value)), max(largest, int(value))
    return least, largest


@njit(nogil=True, cache=True)
def _units_of_trees(
    nodes: Nodes,
    joins: Ints,
    before: Ints,
    leaf_weight: int,
    frames: Frames,
    price: int,
    per_size: Ints,
) -> tuple[int, float]:
    total, slope = 0, 0.0
    for root in range(nodes[TOP].first, nodes[TOP].end):
        units, _, _, root_slope = units_up_to(
            nodes, joins, before, leaf_weight, frames, root, price, 0
        )
        total = min(total + units, NO_PRICE)
        slope += root_slope
        if per_size.size:
            per_size[nodes[root].column] += units
    return total, slope


@njit(nogil=True, cache=True)
def _hand_down(
    nodes: Nodes,
    joins: Ints,
    before: Ints,
    leaf_row: Ints,
    leaf_value: Ints,
    leaf_weight: int,
    frames: Frames,
    total: int,
    key: np.uint64,
    out_rows: Ints,
    out_leaves: Ints,
) -> None:
    """Give the top node `total` units and every node's units to its children."""
    given = np.zeros(nodes.size, np.int64)
    given[TOP] = total
    widest = 1
    for node in nodes:
        widest = max(widest, node.end - node.first)
    last, ranks = np.empty(widest, np.int64), np.empty(widest, np.uint64)
    for index in range(nodes.size):
        units = given[index]
        if units == 0:
            continue
        node = nodes[index]
        if index != TOP:
            out_rows[node.row, node.column] = units
        if node.is_family:
            _to_leaves(
                before, leaf_row, leaf_value, node.first, node.end, node.column, units, key,
                out_rows.shape[0], out_leaves, ranks,
            )  # fmt: skip
        else:
            _to_children(
                nodes, joins, before, leaf_weight, frames, index, units, key,
                out_rows.shape[1], given, last, ranks,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _to_children(
    nodes: Nodes,
    joins: Ints,
    before: Ints,
    leaf_weight: int,
    frames: Frames,
    index: int,
    units: int,
    key: np.uint64,
    n_sizes: int,
    given: Ints,
    last: Ints,
    ranks: NDArray[np.uint64],
) -> None:
    """Children take their units up to the stopping price; surplus ties lose their last one."""
    node = nodes[index]
    first, end = node.first, node.end
    while True:
        stop, surplus, highest, ties = node.stop, -units, -NO_PRICE, 0
        for child in range(first, end):
            given[child], price, _, _ = units_up_to(
                nodes, joins, before, leaf_weight, frames, child, stop, 0
            )
            last[child - first] = price
            surplus += given[child]
            if price > highest:
                highest, ties = price, 0
            ties += price == highest
        if 0 <= surplus < ties:  # seldom otherwise: the last search ended here or close by
            break
        units_up_to(nodes, joins, before, leaf_weight, frames, index, 0, units)
    if surplus == 0:
        return
    ties = 0
    for child in range(first, end):
        if last[child - first] == highest:
            ranks[ties] = priority(key, nodes[child].row * n_sizes + nodes[child].column)
            ties += 1
    cut = kth_least(ranks[:ties], ties - surplus)
    for child in range(first, end):
        if last[child - first] == highest:
            rank = priority(key, nodes[child].row * n_sizes + nodes[child].column)
            given[child] -= rank > cut


@njit(nogil=True, cache=True)
def _to_leaves(
    before: Ints,
    leaf_row: Ints,
    leaf_value: Ints,
    first: int,
    end: int,
    column: int,
    units: int,
    key: np.uint64,
    n_rows: int,
    out_leaves: Ints,
    ranks: NDArray[np.uint64],
) -> None:
    """Level the leaves in play; the last, incomplete round goes to the least priorities."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if before[middle] < units:
            low = middle + 1
        else:
            high = middle
    in_play, n_sizes = low - first, out_leaves.shape[1]
    left = units - before[low - 1]
    rounds = (left - 1) // in_play
    left -= rounds * in_play  # 1 .. in_play
    cut = np.uint64(0)
    if left < in_play:
        for i in range(in_play):
            ranks[i] = priority(key, (n_rows + leaf_row[first + i]) * n_sizes + column)
        cut = kth_least(ranks[:in_play], left)
    for j in range(first, low):
        n = leaf_value[j] - leaf_value[low - 1] + rounds
        if left == in_play:
            n += 1
        else:
            n += priority(key, (n_rows + leaf_row[j]) * n_sizes + column) <= cut
        out_leaves[leaf_row[j], column] = n
