"""The leaves that can hold units at a given price, and the nodes above them, one tree per size.

A unit pays at least w (1 - 2 y) at every node from its leaf to the root, so a leaf whose sum of
these along its path exceeds the price holds nothing at that price. Noise leaves most cells of a
large table out of reach; the others are copied into compact arrays, sorted for `unit_prices`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from trellis.model.arrays import Ints
from trellis.numerics.group_sizes.unit_prices import FRAME, NODE, PRICE_LIMIT, Frames, Nodes

TOP = 0
"""Index of the node that holds the trees of all sizes together and has no measurement."""

LEAST_RANKED, MOST_RANKED = 12, 400
"""Numbers of keys for which counting is the fastest way to sort."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeShape:
    """Nodes level by level, leaves apart: rows `level_start[l] : level_start[l + 1]` are level l.

    Row r has children `first[r] : end[r]`, which are rows, or leaves if r is in the last level of
    rows (a family). Weights are whole and positive, equal within a level.
    """

    level_start: Ints
    first: Ints
    end: Ints
    weight: Ints
    leaf_weight: int

    @property
    def n_rows(self) -> int:
        return self.first.size

    @property
    def n_leaves(self) -> int:
        return int(self.end[-1])


@dataclass(frozen=True, slots=True, eq=False)
class PrunedForest:
    """Compact trees: `nodes` by level, size and row, and the leaves of each family together.

    `joins` and `before` are explained in `unit_prices`; `leaf_row` and `leaf_value` say where a
    leaf comes from. Counts are exact at prices up to `limit`.
    """

    nodes: Nodes
    joins: Ints
    before: Ints
    leaf_row: Ints
    leaf_value: Ints
    leaf_weight: int
    limit: int
    frames: Frames


def prune(shape: TreeShape, rows: Ints, leaves: Ints, limit: int, most_units: int) -> PrunedForest:
    """All that can hold units at prices up to `limit` while no node holds over `most_units`."""
    n_families = int(shape.level_start[-1] - shape.level_start[-2])
    path = _path_prices(shape.level_start, shape.first, shape.end, shape.weight, rows)
    least, count = _least_and_count(
        shape.first, shape.end, path, leaves, n_families, shape.leaf_weight, limit
    )
    in_reach = _in_reach(shape.level_start, shape.first, shape.end, count)
    nodes, leaf_start = _lay_out(
        shape.level_start, shape.first, shape.end, shape.weight, rows, in_reach, limit
    )
    n_active = int(count.sum())
    leaf_row, leaf_value = np.empty(n_active, np.int64), np.empty(n_active, np.int64)
    _gather(shape.first, shape.end, leaves, least, leaf_start, leaf_row, leaf_value)
    joins, before = np.empty(n_active, np.int64), np.empty(n_active, np.int64)
    _price_families(nodes, shape.leaf_weight, most_units, leaf_row, leaf_value, joins, before)
    frames = np.empty(shape.level_start.size, FRAME)
    return PrunedForest(
        nodes, joins, before, leaf_row, leaf_value, shape.leaf_weight, limit, frames
    )


@njit(nogil=True, cache=True)
def _path_prices(level_start: Ints, first: Ints, end: Ints, weight: Ints, rows: Ints) -> Ints:
    """The sum of w (1 - 2 y) from each row up to its root."""
    path = np.empty_like(rows)
    for row in range(rows.shape[0]):
        for s in range(rows.shape[1]):
            path[row, s] = weight[row] * (1 - 2 * rows[row, s])
    for row in range(level_start[-2]):
        for child in range(first[row], end[row]):
            for s in range(rows.shape[1]):
                path[child, s] += path[row, s]
    return path


@njit(nogil=True, cache=True)
def _least_and_count(
    first: Ints,
    end: Ints,
    path: Ints,
    leaves: Ints,
    n_families: int,
    leaf_weight: int,
    limit: int,
) -> tuple[Ints, Ints]:
    """Per family and size: the least value a leaf in reach may have, and how many have it."""
    least = np.empty((n_families, leaves.shape[1]), np.int64)
    count = np.zeros((n_families, leaves.shape[1]), np.int64)
    skipped = first.size - n_families
    for family in range(n_families):
        row = skipped + family
        bound, number = least[family], count[family]
        for s in range(bound.size):  # the ceiling of (leaf_weight + path - limit) / 2 leaf_weight
            bound[s] = -((limit - leaf_weight - path[row, s]) // (2 * leaf_weight))
        for leaf in range(first[row], end[row]):
            values = leaves[leaf]
            for s in range(bound.size):
                number[s] += values[s] >= bound[s]
    return least, count


@njit(nogil=True, cache=True)
def _in_reach(level_start: Ints, first: Ints, end: Ints, count: Ints) -> Ints:
    """How many leaves in reach there are below each row, per size."""
    skipped = level_start[-2]
    below = np.zeros((level_start[-1], count.shape[1]), np.int64)
    below[skipped:] = count
    for row in range(skipped - 1, -1, -1):
        for child in range(first[row], end[row]):
            for s in range(count.shape[1]):
                below[row, s] += below[child, s]
    return below


@njit(nogil=True, cache=True)
def _number_rows(level_start: Ints, in_reach: Ints) -> tuple[Ints, int]:
    """Numbers of the rows in reach by level, size and row, and how many there are with the top.

    Rows out of reach have the number that the next one in reach has.
    """
    number, n_nodes = np.empty(in_reach.shape, np.int64), 1
    for level in range(level_start.size - 1):
        for s in range(in_reach.shape[1]):
            for row in range(level_start[level], level_start[level + 1]):
                number[row, s] = n_nodes
                n_nodes += in_reach[row, s] > 0
    return number, n_nodes


@njit(nogil=True, cache=True)
def _lay_out(
    level_start: Ints,
    first: Ints,
    end: Ints,
    weight: Ints,
    rows: Ints,
    in_reach: Ints,
    limit: int,
) -> tuple[Nodes, Ints]:
    """The nodes in reach, linked, and where each family's leaves of each size begin."""
    number, n_nodes = _number_rows(level_start, in_reach)
    last_level, n_sizes, skipped = level_start.size - 2, rows.shape[1], level_start[-2]
    nodes: Nodes = np.empty(n_nodes, NODE)
    nodes.stop[:] = limit
    top = nodes[TOP]
    top.row, top.column, top.weight, top.base, top.is_family = -1, -1, 0, 0, 0
    top.first, top.end = 1, 1 + np.count_nonzero(in_reach[: level_start[1]])
    leaf_start, n_leaves = np.empty((rows.shape[0] - skipped, n_sizes), np.int64), 0
    for level in range(last_level + 1):
        for s in range(n_sizes):
            for row in range(level_start[level], level_start[level + 1]):
                if level == last_level:
                    leaf_start[row - skipped, s] = n_leaves
                    n_leaves += in_reach[row, s]
                if in_reach[row, s] == 0:
                    continue
                node = nodes[number[row, s]]
                node.row, node.column, node.weight = row, s, weight[row]
                node.base = weight[row] * (1 - 2 * rows[row, s])
                node.is_family = level == last_level
                # `stop` is the parent's so far. If the node takes max(y, 0) units, its own is:
                node.stop -= weight[row] * (1 + 2 * max(-rows[row, s], 0))
                if level == last_level:
                    node.first, node.end = leaf_start[row - skipped, s], n_leaves
                    continue
                node.first = node.end = number[first[row], s]
                for child in range(first[row], end[row]):
                    if in_reach[child, s] > 0:
                        nodes[node.end].stop = node.stop
                        node.end += 1
    return nodes, leaf_start


@njit(nogil=True, cache=True)
def _gather(
    first: Ints,
    end: Ints,
    leaves: Ints,
    least: Ints,
    leaf_start: Ints,
    leaf_row: Ints,
    leaf_value: Ints,
) -> None:
    """Copy the leaves in reach; `leaf_start` is used up."""
    skipped = first.size - least.shape[0]
    for family in range(least.shape[0]):
        bound, place = least[family], leaf_start[family]
        for leaf in range(first[skipped + family], end[skipped + family]):
            values = leaves[leaf]
            for s in range(bound.size):
                if values[s] >= bound[s]:
                    leaf_row[place[s]] = leaf
                    leaf_value[place[s]] = values[s]
                    place[s] += 1


@njit(nogil=True, cache=True)
def _price_families(
    nodes: Nodes,
    leaf_weight: int,
    most_units: int,
    leaf_row: Ints,
    leaf_value: Ints,
    joins: Ints,
    before: Ints,
) -> None:
    """Sort each family's leaves, largest first, and price them; drop those that join too late."""
    scratch = np.empty(3 * MOST_RANKED, np.int64)
    for node in nodes:
        if not node.is_family:
            continue
        first, end = node.first, node.end
        sort_descending(leaf_value[first:end], leaf_row[first:end], scratch)
        # Joining after more units than this costs more than any price in use.
        cap = min(most_units, PRICE_LIMIT // (2 * node.weight))
        units, j = 0, first
        while True:
            before[j] = units
            joins[j] = leaf_weight * (1 - 2 * leaf_value[j]) + node.base + 2 * node.weight * units
            j += 1
            if j == end:
                break
            gap = leaf_value[j - 1] - leaf_value[j]
            # The products may be too large for int64.
            if gap > (cap - units) // (j - first):
                break
            units += gap * (j - first)
        node.end = j


@njit(nogil=True, cache=True)
def sort_descending(keys: Ints, items: Ints, scratch: Ints) -> None:
    """Sort `keys`, largest first, and `items` along with them, in place.

    Counting for each key how many are larger takes no branch that could be mispredicted, and is
    the fastest way over a few hundred keys. Others are left to Shell's sort.
    """
    if LEAST_RANKED <= keys.size <= MOST_RANKED:
        _sort_by_ranks(keys, items, scratch)
    else:
        _shell_sort(keys, items)


@njit(nogil=True, cache=True)
def _sort_by_ranks(keys: Ints, items: Ints, scratch: Ints) -> None:
    n = keys.size
    sorted_keys, sorted_items = scratch[:n], scratch[n : 2 * n]
    n_equal = scratch[2 * n : 3 * n]  # by rank: how many keys of this rank are in their place
    n_equal[:] = 0
    for i in range(n):
        key, rank = keys[i], 0
        for j in range(n):
            rank += np.int64(keys[j] > key)
        place = rank + n_equal[rank]
        n_equal[rank] += 1
        sorted_keys[place], sorted_items[place] = key, items[i]
    keys[:] = sorted_keys
    items[:] = sorted_items


@njit(nogil=True, cache=True)
def _shell_sort(keys: Ints, items: Ints) -> None:
    gap = 1
    while gap < keys.size // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, keys.size):
            key, item, j = keys[i], items[i], i
            while j >= gap and keys[j - gap] < key:
                keys[j], items[j] = keys[j - gap], items[j - gap]
                j -= gap
            keys[j], items[j] = key, item
        gap //= 3
