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

from math import inf
from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints
from trellis.numerics.projection.equal_weights import widest_family
from trellis.numerics.ties import priority

REAL_LIMIT = 2**50
"""Bound of |x| and of the totals."""

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-100, 1e100

UNKNOWN_WEIGHT = 2.0**-500
"""Its dearest unit costs less than the least cost, other than 0, of any weighted unit."""


@njit(nogil=True, cache=True)
def project_weighted(
    x: Floats,
    weights: Floats,
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
    widest = widest_family(start, first, last)
    heap, costs = np.empty(widest, np.int64), np.empty(widest, np.float64)
    for family in range(first, last):
        lo, hi = start[family], start[family + 1]
        family_x, family_weights, y = x[lo:hi], weights[lo:hi], out[lo:hi]
        spread = costs[: hi - lo]  # until step 3
        for i in range(hi - lo):
            spread[i] = 1 / family_weights[i]
        mu = _multiplier(family_x, spread, totals[family])
        missing = totals[family] - _buy_up_to(-2 * mu, family_x, family_weights, spread, y)
        if missing:
            _repair(missing, family_x, family_weights, y, key, first_index + lo, heap, costs)


@njit(nogil=True, cache=True)
def _cost(x: float, weight: float, unit: int) -> float:
    return weight * (2 * unit - 1 - 2 * x)


@njit(nogil=True, cache=True)
def _multiplier(x: Floats, spread: Floats, total: int) -> float:
    """The mu at which sum_i max(0, x_i - mu spread_i) = total, up to rounding; spread = 1 / w."""
    excess, slope, active = -float(total), 0.0, x.size
    for i in range(x.size):
        excess += x[i]
        slope += spread[i]
    mu = 0.0
    while slope > 0:  # else only fixed children are left
        mu = excess / slope
        excess, slope, count = -float(total), 0.0, 0
        for i in range(x.size):
            if x[i] > mu * spread[i]:
                excess += x[i]
                slope += spread[i]
                count += 1
        # Rounding could make the steps cycle; in exact arithmetic the active set only shrinks.
        if count >= active:
            break
        active = count
    return mu


@njit(nogil=True, cache=True)
def _buy_up_to(limit: float, x: Floats, weights: Floats, spread: Floats, y: Ints) -> int:
    """Set y to the units that cost at most `limit`; return how many they are."""
    bought = 0
    for i in range(x.size):
        units = int(max(0.0, np.floor(x[i] + limit / 2 * spread[i] + 0.5)))
        too_few = _cost(x[i], weights[i], units + 1) <= limit
        too_many = (units > 0) & (_cost(x[i], weights[i], units) > limit)
        if too_few | too_many:  # by rounding only, so one branch is faster than two loops
            units = _corrected(units, limit, x[i], weights[i])
        y[i] = units
        bought += units
    return bought


@njit(nogil=True, cache=True)
def _corrected(units: int, limit: float, x: float, weight: float) -> int:
    while _cost(x, weight, units + 1) <= limit:
        units += 1
    while units > 0 and _cost(x, weight, units) > limit:
        units -= 1
    return units


# -- repair ---------------------------------------------------------------------------------------


class _Steps(NamedTuple):
    """The next unit that each child may buy, or give back, and the order between them."""

    costs: Floats
    key: np.uint64
    key_mask: np.uint64
    first_index: int


@njit(nogil=True, cache=True)
def _repair(
    missing: int,
    x: Floats,
    weights: Floats,
    y: Ints,
    key: np.uint64,
    first_index: int,
    heap: Ints,
    costs: Floats,
) -> None:
    """Buy the `missing` cheapest units, or give back the dearest if it is negative."""
    direction = 1 if missing > 0 else -1
    # Units bought last are given back first: turn the order of priorities round.
    key_mask = np.uint64(0) if missing > 0 else ~np.uint64(0)
    steps = _Steps(costs, key, key_mask, first_index)
    for i in range(x.size):
        costs[i] = _step_cost(x[i], weights[i], y[i], direction)
    # A child whose first step is not among the first `missing` never takes one.
    chosen = _first_steps(heap[: min(abs(missing), x.size)], x.size, steps)
    for _ in range(abs(missing)):
        i = int(chosen[0])
        y[i] += direction
        costs[i] = _step_cost(x[i], weights[i], y[i], direction)
        _sift_down(chosen, 0, steps, False)


@njit(nogil=True, cache=True)
def _step_cost(x: float, weight: float, units: int, direction: int) -> float:
    if direction > 0:
        return _cost(x, weight, units + 1)
    return -_cost(x, weight, units) if units > 0 else inf


@njit(nogil=True, cache=True)
def _first_steps(heap: Ints, n_children: int, steps: _Steps) -> Ints:
    """Fill `heap` with the children whose steps come first, the very first on top."""
    heap[:] = np.arange(heap.size)
    _order(heap, steps, True)
    for i in range(heap.size, n_children):
        if _goes_first(i, heap[0], steps):
            heap[0] = i
            _sift_down(heap, 0, steps, True)
    _order(heap, steps, False)
    return heap


@njit(nogil=True, cache=True)
def _order(heap: Ints, steps: _Steps, last_on_top: bool) -> None:
    for position in range(heap.size // 2 - 1, -1, -1):
        _sift_down(heap, position, steps, last_on_top)


@njit(nogil=True, cache=True)
def _sift_down(heap: Ints, position: int, steps: _Steps, last_on_top: bool) -> None:
    moving = heap[position]
    while True:
        child = 2 * position + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and (
            _goes_first(heap[child + 1], heap[child], steps) != last_on_top
        ):
            child += 1
        if _goes_first(heap[child], moving, steps) == last_on_top:
            break
        heap[position] = heap[child]
        position = child
    heap[position] = moving


@njit(nogil=True, cache=True)
def _goes_first(a: int, b: int, steps: _Steps) -> bool:
    if steps.costs[a] != steps.costs[b]:
        return steps.costs[a] < steps.costs[b]
    rank_a = priority(steps.key, steps.first_index + a) ^ steps.key_mask
    rank_b = priority(steps.key, steps.first_index + b) ^ steps.key_mask
    return bool(rank_a < rank_b)
