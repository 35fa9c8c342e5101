"""From the nodes that carry something to the children of all nodes that are left."""

from __future__ import annotations

from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def add_to_children(
    start_of: NDArray,
    within: NDArray,
    count: NDArray,
    parents: NDArray,
    start: NDArray,
    values: NDArray,
    positions: NDArray,
) -> None:
    """Add the counts below each parent to the values of its children, and note where they are.

    The carriers below carrier `p` are `start_of[p] : start_of[p + 1]`, each at position `within`
    among all children of its parent. Family `f` has children `start[f] : start[f + 1]` and the
    parent `parents[f]` among the carriers, negative if it carries nothing.
    """
    for family in range(parents.size):
        parent = parents[family]
        if parent < 0:
            continue
        for node in range(start_of[parent], start_of[parent + 1]):
            child = start[family] + within[node]
            values[child] += count[node]
            positions[child] = node
