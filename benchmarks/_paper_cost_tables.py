"""The cost tables of Fioretto, Van Hentenryck and Zhu, compiled: the slow twin of our solver.

Every node has a table of the least cost of its subtree for each count on a window of delta on
either side of its noisy count (their footnote: delta = 3 ceil(2 lambda^2), three times the noise's
variance). Children's tables are combined by raising, one unit at a time, the child whose next unit
is cheapest, found with a heap; the same downwards. At the end all sizes are combined to the total.

To its advantage, a leaf's table is not stored (its differences are known), and counts are handed
down by stopping the same walk at the count wanted. Three levels, equal weights.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.model import Hierarchy

IntArray = NDArray[np.int64]
FAR = 2**60


def window(scale: float) -> int:
    return 3 * int(np.ceil(2 * scale**2))


def solve_by_tables(
    tree: Hierarchy, noisy: list[IntArray], total: int, delta: int
) -> list[IntArray]:
    """Whole counts per level; optimal if the windows hold the optimum."""
    start = tree.child_start[1]
    out = [np.zeros_like(t) for t in noisy]
    n_sizes = noisy[0].shape[1]
    roots = np.empty((n_sizes, 2 * delta + 1), np.int64)
    columns = [np.ascontiguousarray(t.T) for t in noisy]
    states = [_state_tables(columns[1][s], columns[2][s], start, delta) for s in range(n_sizes)]
    for s in range(n_sizes):
        _root_table(columns[0][s, 0], *states[s], delta, roots[s])
    root_low = np.maximum(columns[0][:, 0] - delta, 0)
    root_counts = np.empty(n_sizes, np.int64)
    _walk_tables(roots, root_low, total, root_counts)
    for s in range(n_sizes):
        out[0][0, s] = root_counts[s]
        counts, leaves = np.empty(start.size - 1, np.int64), np.empty(int(start[-1]), np.int64)
        _walk_tables(*states[s], root_counts[s], counts)
        _walk_families(columns[2][s], start, delta, counts, leaves)
        out[1][:, s], out[2][:, s] = counts, leaves
    return out


@njit(cache=True)
def _sift(heap: IntArray, keys: IntArray, i: int, n: int) -> None:
    item = heap[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[item]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = item


@njit(cache=True)
def _heapify(heap: IntArray, keys: IntArray) -> None:
    for i in range(heap.size):
        heap[i] = i
    for i in range(heap.size // 2 - 1, -1, -1):
        _sift(heap, keys, i, heap.size)


# -- leaves under a state -------------------------------------------------------------------------


@njit(cache=True)
def _leaf_key(count: int, value: int, delta: int, sign: int) -> int:
    """The price of one unit more (sign 1) or less (sign -1) in a leaf."""
    if sign > 0:
        return 2 * (count - value) + 1 if count < max(value + delta, 0) else FAR
    return 2 * (value - count) + 1 if count > max(value - delta, 0) else FAR


@njit(cache=True)
def _state_table(value: int, leaves: IntArray, delta: int, table: IntArray) -> None:
    """Costs of a state's counts low .. low + 2 delta."""
    low = max(value - delta, 0)
    for i in range(table.size):
        table[i] = FAR
    n = leaves.size
    keys, heap, counts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for sign in (1, -1):
        reached, cost = 0, 0
        for i in range(n):
            counts[i] = max(leaves[i], 0)
            reached += counts[i]
            cost += (counts[i] - leaves[i]) ** 2
            keys[i] = _leaf_key(counts[i], leaves[i], delta, sign)
        _heapify(heap, keys)
        while True:
            if low <= reached < low + table.size:
                table[reached - low] = cost + (reached - value) ** 2
            beyond = reached >= low + table.size - 1 if sign > 0 else reached <= low
            cheapest = heap[0]
            if beyond or keys[cheapest] >= FAR:
                break
            cost += keys[cheapest]
            reached += sign
            counts[cheapest] += sign
            keys[cheapest] = _leaf_key(counts[cheapest], leaves[cheapest], delta, sign)
            _sift(heap, keys, 0, n)


@njit(cache=True)
def _walk_leaves(leaves: IntArray, wanted: int, delta: int, counts: IntArray) -> None:
    n, reached = leaves.size, 0
    for i in range(n):
        counts[i] = max(leaves[i], 0)
        reached += counts[i]
    sign = 1 if wanted > reached else -1
    keys, heap = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        keys[i] = _leaf_key(counts[i], leaves[i], delta, sign)
    _heapify(heap, keys)
    while reached != wanted:
        cheapest = heap[0]
        reached += sign
        counts[cheapest] += sign
        keys[cheapest] = _leaf_key(counts[cheapest], leaves[cheapest], delta, sign)
        _sift(heap, keys, 0, n)


# -- tables under a root, or under the total ------------------------------------------------------


@njit(cache=True)
def _table_key(table: IntArray, at: int, sign: int) -> int:
    if not 0 <= at + sign < table.size or table[at + sign] >= FAR:
        return FAR
    return table[at + sign] - table[at]


@njit(cache=True)
def _root_table(
    value: int, tables: IntArray, state_low: IntArray, delta: int, table: IntArray
) -> None:
    n, low = state_low.size, max(value - delta, 0)
    for i in range(table.size):
        table[i] = FAR
    keys, heap, at = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for sign in (1, -1):
        reached, cost = 0, 0
        for i in range(n):
            at[i] = np.argmin(tables[i])
            reached += state_low[i] + at[i]
            cost += tables[i, at[i]]
            keys[i] = _table_key(tables[i], at[i], sign)
        _heapify(heap, keys)
        while True:
            if low <= reached < low + table.size:
                table[reached - low] = cost + (reached - value) ** 2
            beyond = reached >= low + table.size - 1 if sign > 0 else reached <= low
            cheapest = heap[0]
            if beyond or keys[cheapest] >= FAR:
                break
            cost += keys[cheapest]
            reached += sign
            at[cheapest] += sign
            keys[cheapest] = _table_key(tables[cheapest], at[cheapest], sign)
            _sift(heap, keys, 0, n)


@njit(cache=True)
def _state_tables(
    states: IntArray, leaves: IntArray, start: IntArray, delta: int
) -> tuple[IntArray, IntArray]:
    tables = np.empty((states.size, 2 * delta + 1), np.int64)
    low = np.empty(states.size, np.int64)
    for i in range(states.size):
        low[i] = max(states[i] - delta, 0)
        _state_table(states[i], leaves[start[i] : start[i + 1]], delta, tables[i])
    return tables, low


@njit(cache=True)
def _walk_tables(tables: IntArray, low: IntArray, wanted: int, counts: IntArray) -> None:
    n, reached = low.size, 0
    at = np.empty(n, np.int64)
    for i in range(n):
        at[i] = np.argmin(tables[i])
        reached += low[i] + at[i]
    sign = 1 if wanted > reached else -1
    keys, heap = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        keys[i] = _table_key(tables[i], at[i], sign)
    _heapify(heap, keys)
    while reached != wanted and keys[heap[0]] < FAR:
        cheapest = heap[0]
        reached += sign
        at[cheapest] += sign
        keys[cheapest] = _table_key(tables[cheapest], at[cheapest], sign)
        _sift(heap, keys, 0, n)
    for i in range(n):
        counts[i] = low[i] + at[i]


@njit(cache=True)
def _walk_families(
    leaves: IntArray, start: IntArray, delta: int, counts: IntArray, out: IntArray
) -> None:
    for i in range(counts.size):
        family = slice(start[i], start[i + 1])
        _walk_leaves(leaves[family], counts[i], delta, out[family])
