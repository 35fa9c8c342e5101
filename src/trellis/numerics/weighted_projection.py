r"""Whole, non-negative children nearest to their estimates; any weights, real estimates.

For each family, given real x, weights w and a total c,

    minimise sum_i w_i (y_i - x_i)^2   over whole y >= 0 with sum_i y_i = c.

Unit k of child i costs w_i (2 k - 1 - 2 x_i), which grows with k, so the optimum buys the c
cheapest units; equal costs go by least priority. Rounding the real-valued optimum and handing
out the remainder is *not* optimal here: a child of small weight may lie many units away from it.

1. The real-valued optimum y_i = max(0, x_i - mu / w_i) gives the multiplier mu, by Newton's
   method on a convex, piecewise linear function (a logarithmic number of passes).
2. Buy every unit that costs at most -2 mu, by the same floating-point formula that compares
   costs later. At most half a unit per child is missing or too much.
3. Buy the cheapest units, or give back the dearest, one at a time with a heap.

Steps 2 and 3 follow one total order (cost, priority), so the result is the optimum of the costs
as computed in double precision, whatever rounding did to mu.

A weight of infinity fixes a child at its x, which must be whole and non-negative: its units cost
minus infinity up to x and infinity above. A weight of zero is replaced by `UNKNOWN_WEIGHT`, so
small that it decides only what the weighted children leave open: these take their nearest whole
numbers if the total allows, and children of weight zero share the rest, as near to their x as
that permits. That is the limit of equal weights that tend to zero.

Range: x and c within 2^50, where 2 k - 1 - 2 x keeps distinct units distinct; weights within
1e-100 .. 1e100.
"""

from __future__ import annotations

from math import floor, inf

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.numerics.projection import IntArray, widest_family
from trellis.numerics.ties import priority

FloatArray = NDArray[np.float64]

REAL_LIMIT = 2**50
"""Bound of |x| and of the totals."""

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-100, 1e100

UNKNOWN_WEIGHT = 2.0**-500
"""Its dearest unit costs less than the least cost, other than 0, of any weighted unit."""


@njit(nogil=True, cache=True)
def project_weighted(
    x: FloatArray,
    weights: FloatArray,
    start: IntArray,
    totals: IntArray,
    key: np.uint64,
    first_index: int,
    out: IntArray,
    first: int,
    last: int,
) -> None:
    """Project families `first : last` of the CSR row pointer `start` into `out`.

    `first_index` is the index of `x[0]` in the whole tree, for the breaking of ties.
    """
    widest = widest_family(start, first, last)
    heap, costs = np.empty(widest, np.int64), np.empty(widest, np.float64)
    for family in range(first, last):
        lo, hi = start[family], start[family + 1]
        family_x, family_weights, y = x[lo:hi], weights[lo:hi], out[lo:hi]
        multiplier = _multiplier(family_x, family_weights, totals[family])
        missing = totals[family] - _buy_up_to(-2 * multiplier, family_x, family_weights, y)
        if missing:
            _repair(missing, family_x, family_weights, y, key, first_index + lo, heap, costs)


@njit(nogil=True, cache=True)
def _cost(x: float, weight: float, unit: int) -> float:
    return weight * (2 * unit - 1 - 2 * x)


@njit(nogil=True, cache=True)
def _multiplier(x: FloatArray, weights: FloatArray, total: int) -> float:
    """The mu at which sum_i max(0, x_i - mu / w_i) = total, up to rounding."""
    mu, active = -inf, x.size + 1
    while True:
        excess, slope, count = -float(total), 0.0, 0
        for i in range(x.size):
            spread = 1 / weights[i]
            # mu times spread would be inf * 0 for a fixed child in the first pass.
            if mu == -inf or x[i] > mu * spread:
                excess += x[i]
                slope += spread
                count += 1
        if slope == 0:  # only fixed children are left
            return mu if mu > -inf else 0.0
        # Rounding could make the steps cycle; the set of active children never grows.
        if count >= active:
            return mu
        mu, active = excess / slope, count


@njit(nogil=True, cache=True)
def _buy_up_to(limit: float, x: FloatArray, weights: FloatArray, y: IntArray) -> int:
    """Set y to the units that cost at most `limit`; return how many they are."""
    bought = 0
    for i in range(x.size):
        units = int(max(0.0, floor(x[i] + limit / (2 * weights[i]) + 0.5)))
        while _cost(x[i], weights[i], units + 1) <= limit:
            units += 1
        while units and _cost(x[i], weights[i], units) > limit:
            units -= 1
        y[i] = units
        bought += units
    return bought


@njit(nogil=True, cache=True)
def _repair(
    missing: int,
    x: FloatArray,
    weights: FloatArray,
    y: IntArray,
    key: np.uint64,
    first_index: int,
    heap: IntArray,
    costs: FloatArray,
) -> None:
    """Buy the `missing` cheapest units, or give back the dearest if it is negative."""
    step = 1 if missing > 0 else -1
    # Units bought last are given back first: turn the order of priorities round.
    key_mask = np.uint64(0) if step > 0 else ~np.uint64(0)
    for i in range(x.size):
        heap[i] = i
        costs[i] = _step_cost(x[i], weights[i], y[i], step)
    for position in range(x.size // 2 - 1, -1, -1):
        _sift_down(heap[: x.size], position, costs, key, key_mask, first_index)
    for _ in range(abs(missing)):
        i = int(heap[0])
        y[i] += step
        costs[i] = _step_cost(x[i], weights[i], y[i], step)
        _sift_down(heap[: x.size], 0, costs, key, key_mask, first_index)


@njit(nogil=True, cache=True)
def _step_cost(x: float, weight: float, units: int, step: int) -> float:
    if step > 0:
        return _cost(x, weight, units + 1)
    return -_cost(x, weight, units) if units else inf


@njit(nogil=True, cache=True)
def _sift_down(
    heap: IntArray,
    position: int,
    costs: FloatArray,
    key: np.uint64,
    key_mask: np.uint64,
    first_index: int,
) -> None:
    moving = heap[position]
    while True:
        child = 2 * position + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and _goes_first(
            heap[child + 1], heap[child], costs, key, key_mask, first_index
        ):
            child += 1
        if not _goes_first(heap[child], moving, costs, key, key_mask, first_index):
            break
        heap[position] = heap[child]
        position = child
    heap[position] = moving


@njit(nogil=True, cache=True)
def _goes_first(
    a: int, b: int, costs: FloatArray, key: np.uint64, key_mask: np.uint64, first_index: int
) -> bool:
    if costs[a] != costs[b]:
        return costs[a] < costs[b]
    rank_a = priority(key, first_index + a) ^ key_mask
    return bool(rank_a < priority(key, first_index + b) ^ key_mask)
