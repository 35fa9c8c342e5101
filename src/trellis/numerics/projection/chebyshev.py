r"""Whole, non-negative children at the least Chebyshev distance from their estimates, in int64.

For each family, given whole x and a total c,

    minimise max_i |y_i - x_i|   over whole y >= 0 with sum_i y_i = c.

Many y attain the minimum; the order decides which one is taken. With z = y - x, d = c - sum x and b
children:

1. z_i = max(ceil(d / b), -x_i) has a sum of at least d; t = max |z_i| is a lower bound of the
   minimum. What is too much, E = sum z - d, has to be taken away.
2. Taking from child i down to z_i = max(-x_i, -t) costs nothing. Children give in ascending order
   of x, so that small values, which are likely to be noise, vanish first; or in descending order.
3. If that is not enough, only children with x_i > t can still give. t rises for all of them
   together (water-filling); of the last unit of t, those give that come first in the order.

Ties between equal x go to the least priority (`trellis.numerics.ties`). Sorting takes
O(b log b), all else O(b).

Range: sum_i |x_i| + c < 2^62, so that no sum leaves int64.

Reference: IntOpt in Boninsegna and Silvestri, PoPETs 2025(3), doi:10.56553/popets-2025-0087. Their
loops lower one child at a time and divide by zero for c = 0; this gives the same answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.model.arrays import Ints
from trellis.numerics.projection.equal_weights import widest_family
from trellis.numerics.ties import priority

_SHORT = 16  # runs that insertion sorts fastest


@njit(nogil=True, cache=True)
def project_chebyshev_runs(
    x: Ints,
    start: Ints,
    totals: Ints,
    descending: bool,
    key: np.uint64,
    index: Ints,
    first_index: int,
    out: Ints,
    first: int,
    last: int,
) -> None:
    """Project families `first : last` of the CSR row pointer `start` into `out`.

    Ties are broken by the index of each x in the whole level: `index`, or if that is empty, as many
    positions after `first_index` as x is after `x[0]`.
    """
    widest = widest_family(start, first, last)
    order, other = np.empty(widest, np.int64), np.empty(widest, np.int64)
    rank = np.empty(widest, np.uint64)
    for family in range(first, last):
        lo, hi = start[family], start[family + 1]
        size, total, y = hi - lo, totals[family], out[lo:hi]
        if total == 0:
            y[:] = 0
            continue
        if size == 1:
            y[0] = total
            continue
        excess, bound = _raise_together(x[lo:hi], total, y)
        if excess == 0:
            continue
        givers = 0
        for i in range(size):
            if y[i] > 0:
                order[givers] = i
                givers += 1
                place = int(index[lo + i]) if index.size else first_index + lo + i
                rank[i] = priority(key, place)
        sorted_order = sort_order(x[lo:hi], rank, descending, order[:givers], other[:givers])
        excess = _take_within(x[lo:hi], y, sorted_order, bound, excess)
        if excess > 0:
            _take_beyond(y, sorted_order, descending, excess)


@njit(nogil=True, cache=True)
def _raise_together(x: Ints, total: int, y: Ints) -> tuple[int, int]:
    """Step 1: y = x + max(ceil(d / b), -x); what is too much, and the bound t."""
    missing = total
    for value in x:
        missing -= value
    each = -((-missing) // x.size)
    excess, bound = -missing, 0
    for i in range(x.size):
        change = max(each, -x[i])
        y[i] = x[i] + change
        excess += change
        bound = max(bound, abs(change))
    return excess, bound


@njit(nogil=True, cache=True)
def _take_within(x: Ints, y: Ints, order: Ints, bound: int, excess: int) -> int:
    """Step 2: lower each child to max(0, x - t); returns what is still too much."""
    left = excess
    for i in order:
        taken = min(left, y[i] - max(0, x[i] - bound))
        y[i] -= taken
        left -= taken
        if left == 0:
            break
    return int(left)


@njit(nogil=True, cache=True)
def _take_beyond(y: Ints, order: Ints, descending: bool, excess: int) -> None:
    """Step 3: raise t by r + 1, where r is the most that is not enough; y = max(0, x - t) here."""
    size, given, fallen = order.size, 0, 0
    while True:  # y rises with x: find the first that can give its part of what is left
        lowest = order[size - 1 - fallen] if descending else order[fallen]
        if y[lowest] * (size - fallen) >= excess - given:
            break
        given += y[lowest]
        fallen += 1
    r = (excess - given - 1) // (size - fallen)
    left = excess - given - r * (size - fallen)
    for i in order:
        gone = min(y[i], r)
        if y[i] > r and left > 0:
            gone += 1
            left -= 1
        y[i] -= gone


@njit(nogil=True, cache=True)
def sort_order(x: Ints, rank: np.ndarray, descending: bool, order: Ints, other: Ints) -> Ints:
    """The positions in `order` sorted by x, equal ones by rank; uses `other` as scratch.

    Insertion within short runs, then merging: O(b log b) whatever the input.
    """
    size, width = order.size, _SHORT
    for begin in range(0, size, width):
        for end in range(begin + 1, min(begin + width, size)):
            moving, place = order[end], end
            while place > begin and _precedes(moving, order[place - 1], x, rank, descending):
                order[place] = order[place - 1]
                place -= 1
            order[place] = moving
    while width < size:
        for begin in range(0, size, 2 * width):
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            left, right = begin, middle
            for place in range(begin, end):
                if left < middle and (
                    right >= end or not _precedes(order[right], order[left], x, rank, descending)
                ):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@njit(nogil=True, cache=True, inline="always")
def _precedes(a: int, b: int, x: Ints, rank: np.ndarray, descending: bool) -> bool:
    if x[a] == x[b]:
        return rank[a] < rank[b]
    return (x[a] < x[b]) != descending
