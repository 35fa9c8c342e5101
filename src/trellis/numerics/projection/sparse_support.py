r"""Which children of a family to keep: least squares with a price on every child that is not zero.

For each family, given whole x, a total c and a price p,

    minimise sum_i (y_i - x_i)^2 + p |{i : y_i > 0}|   over real y >= 0 with sum_i y_i = c.

Among supports of k children the k largest are best (swapping a smaller for a larger one cannot
cost more), and least squares add the same to each of them, so the cost of k is

    sum_{i > k} x_i^2 + (c - sum_{i <= k} x_i)^2 / k + p k        (x descending),

as long as the k-th stays positive. Once one does not, no later one does (it is the projection on a
simplex). Prefix sums give all costs in one pass: O(b log b) with the sort. The choice looks at
noisy values alone: post-processing.

With p = (kappa sigma)^2 a lone child of a large family is kept if it lies about kappa standard
deviations above zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.model.arrays import Ints
from trellis.numerics.projection.chebyshev import sort_order
from trellis.numerics.projection.equal_weights import widest_family
from trellis.numerics.ties import priority


@njit(nogil=True, cache=True)
def keep_largest(
    x: Ints,
    start: Ints,
    totals: Ints,
    price: np.ndarray,
    key: np.uint64,
    first_index: int,
    kept: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Mark in `kept` which children of families `first : last` may be positive.

    Each family has a price of its own.
    """
    widest = widest_family(start, first, last)
    order, other = np.empty(widest, np.int64), np.empty(widest, np.int64)
    rank = np.empty(widest, np.uint64)
    for family in range(first, last):
        lo, hi = start[family], start[family + 1]
        size = hi - lo
        kept[lo:hi] = False
        if totals[family] == 0:
            continue
        for i in range(size):
            order[i] = i
            rank[i] = priority(key, first_index + lo + i)
        largest_first = sort_order(x[lo:hi], rank[:size], True, order[:size], other[:size])
        for i in largest_first[
            : _best_size(x[lo:hi], largest_first, totals[family], price[family])
        ]:
            kept[lo + i] = True


@njit(nogil=True, cache=True)
def _best_size(x: Ints, order: Ints, total: int, price: float) -> int:
    """The number of children of least cost, relative to keeping none."""
    gap, saved = float(total), 0.0
    best, best_size = np.inf, 1
    for k in range(1, x.size + 1):
        value = float(x[order[k - 1]])
        gap -= value
        saved += value * value
        if k > 1 and value + gap / k <= 0:
            break
        cost = gap * gap / k + price * k - saved
        if cost < best:
            best, best_size = cost, k
    return best_size
