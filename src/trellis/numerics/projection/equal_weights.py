r"""Whole, non-negative children nearest to their estimates; equal weights, pure int64.

For each family, given whole x and a total c,

    minimise sum_i (y_i - x_i)^2   over whole y >= 0 with sum_i y_i = c.

Unit k of child i costs k^2 - (k-1)^2 up to the shift, that is 2 (k - x_i) - 1, which grows with
k: the optimum buys the c cheapest units. Up to whole numbers it is y_i = max(0, x_i - t), with
the threshold t at the root of the convex, piecewise linear f(t) = sum_i max(0, x_i - t) - c.
Children above floor(t) get the same amount less than x_i; what is left over, less than one unit
for each of them, is a tie between all of them and goes to those of least priority.

Newton's method finds t from the left. Each step divides the product of f and its slope by four
or more, so the number of passes is logarithmic even for families made to be slow.

Range: x within +-2^62; c (n + 1) < 2^62 for a family of n. Values are used relative to the
largest, and those that lie c or more below it get nothing, so no sum leaves int64.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.model.arrays import Ints
from trellis.numerics.ties import kth_least, priority

WHOLE_LIMIT = 2**62
"""Bound of |x| and of c (n + 1)."""


@njit(nogil=True, cache=True)
def project_whole(
    x: Ints,
    start: Ints,
    totals: Ints,
    key: np.uint64,
    first_index: int,
    out: Ints,
    first: int,
    last: int,
) -> None:
    """Project families `first : last` of the CSR row pointer `start` into `out`.

    `first_index` is the index of `x[0]` in the whole tree, for the breaking of ties.
    """
    scratch = np.empty(widest_family(start, first, last), np.uint64)
    for family in range(first, last):
        lo, hi = start[family], start[family + 1]
        _project_family(x[lo:hi], totals[family], key, first_index + lo, out[lo:hi], scratch)


@njit(nogil=True, cache=True)
def widest_family(start: Ints, first: int, last: int) -> int:
    widest = 0
    for family in range(first, last):
        widest = max(widest, start[family + 1] - start[family])
    return widest


@njit(nogil=True, cache=True)
def _project_family(
    x: Ints,
    total: int,
    key: np.uint64,
    first_index: int,
    out: Ints,
    scratch: NDArray[np.uint64],
) -> None:
    if total == 0:
        out[:] = 0
        return
    top = x[0]
    for value in x:
        top = max(top, value)
    threshold = top - total
    while True:
        kept, shared = 0, total  # shared = sum over the kept of y_i + (top - x_i)
        for value in x:
            if value > threshold:
                kept += 1
                shared += top - value
        each, extra = shared // kept, shared % kept
        reached = top - each - (extra > 0)
        if reached == threshold:
            break
        threshold = reached
    cut = np.uint64(0)
    if extra:
        cut = _least_priorities(x, threshold, extra, key, first_index, scratch)
    for i in range(x.size):
        if x[i] > threshold:
            out[i] = each - (top - x[i])
            if extra and priority(key, first_index + i) <= cut:
                out[i] += 1
        else:
            out[i] = 0


@njit(nogil=True, cache=True)
def _least_priorities(
    x: Ints,
    threshold: int,
    count: int,
    key: np.uint64,
    first_index: int,
    scratch: NDArray[np.uint64],
) -> np.uint64:
    """The priority up to which `count` of the children above `threshold` lie."""
    kept = 0
    for i in range(x.size):
        if x[i] > threshold:
            scratch[kept] = priority(key, first_index + i)
            kept += 1
    return kth_least(scratch[:kept], count)
