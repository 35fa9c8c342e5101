"""The rules that fit the children of a pair to its count, for all families of a level at once.

All give whole y >= 0 with the sum c of their family, from whole x. Of several that are equally good
a rank decides, which follows from the published seed by SplitMix64. None of this is code of the
estimators: where they go through families one by one, here all families of a level are cut at
thresholds that are found by halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_STEP, _WORD = 0x9E3779B97F4A7C15, 2**64
_HALVINGS = 64


@dataclass(frozen=True, slots=True)
class Families:
    """Children of a level, family by family: values, where families begin, sums, and ranks."""

    x: np.ndarray
    start: np.ndarray
    sums: np.ndarray
    rank: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)

    @property
    def of(self) -> np.ndarray:
        """The family of each child."""
        return np.repeat(np.arange(self.sums.size), self.sizes)

    def total(self, values: np.ndarray) -> np.ndarray:
        before = np.concatenate([[0], np.cumsum(values)])
        return before[self.start[1:]] - before[self.start[:-1]]

    def only(self, chosen: np.ndarray, rank: np.ndarray) -> Families:
        """Some of the children; a family without any has no sum to share out."""
        place = np.concatenate([[0], np.cumsum(chosen)])
        start = place[self.start]
        sums = np.where(np.diff(start) > 0, self.sums, 0)
        return Families(self.x[chosen], start, sums, rank)

    def greatest(self, values: np.ndarray) -> np.ndarray:
        """By family; 0 where there are no children."""
        out = np.zeros(self.sums.size, dtype=values.dtype)
        some = self.sizes > 0
        if values.size:
            out[some] = np.maximum.reduceat(values, self.start[:-1][some])
        return out


Rule = Callable[[Families], np.ndarray]


def ranks(seed: int, index: np.ndarray) -> np.ndarray:
    """SplitMix64 of a seed that was mixed once, at each index."""
    key = int(_mixed(np.array([(seed + _STEP) % _WORD], dtype=np.uint64))[0])
    return _mixed(np.uint64(key) + index.astype(np.uint64) * np.uint64(_STEP))


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def chebyshev(families: Families, *, descending: bool = False) -> np.ndarray:
    """The least largest distance from x; small values give way first, or large ones.

    All are raised by as much as is missing. What that is too much is taken away again, down to
    x - t, for the least t that is enough.
    """
    f, x = families, families.x
    sizes = np.maximum(f.sizes, 1)
    each = -((f.total(x) - f.sums) // sizes)
    y = np.maximum(x + each[f.of], 0)
    reached = f.greatest(np.abs(y - x))
    enough = _least(lambda t: f.total(np.maximum(x - t[f.of], 0)) <= f.sums, reached, f)
    if (beyond := enough > reached).any():
        y = np.where(beyond[f.of], np.maximum(x - (enough - 1)[f.of], 0), y)
    give = np.maximum(y - np.maximum(x - enough[f.of], 0), 0)
    order = np.lexsort([f.rank, -x if descending else x, f.of])
    gives = give[order]
    before = np.cumsum(gives) - gives
    before -= np.repeat(np.concatenate([before, [0]])[f.start[:-1]], f.sizes)
    taken = np.clip((f.total(y) - f.sums)[f.of] - before, 0, gives)
    y[order] -= taken
    return np.where((f.sums == 0)[f.of], 0, y)


def least_squares(families: Families) -> np.ndarray:
    """The least sum of squares: all give equally much; units left over go to the least ranks."""
    f, x = families, families.x
    top = f.greatest(x)
    floor = np.where(f.sizes > 0, top - f.sums - 1, 0)
    cut = _least(lambda t: f.total(np.maximum(x - t[f.of], 0)) <= f.sums, floor, f)
    y = np.maximum(x - cut[f.of], 0)
    over = f.sums - f.total(y)
    order = np.lexsort([f.rank, x < cut[f.of], f.of])
    position = np.arange(x.size) - np.repeat(f.start[:-1], f.sizes)
    y[order] += position < over[f.of]
    return np.where((f.sums == 0)[f.of], 0, y)


def support(families: Families, price: np.ndarray) -> np.ndarray:
    """Which children least squares with a price on each positive one leaves positive.

    Of k children the k largest, at the cost (c - their sum)^2 / k + price k - their squares.
    """
    f = families
    order = np.lexsort([f.rank, -f.x, f.of])
    x = f.x[order].astype(np.float64)
    first = np.repeat(f.start[:-1], f.sizes)
    k = np.arange(x.size) - first + 1
    gap = f.sums[f.of] - _running(x, first)
    is_out = (k > 1) & (x + gap / k <= 0)
    cost = gap**2 / k + price[f.of] * k - _running(x * x, first)
    cost[_running(is_out.astype(np.float64), first) > 0] = np.inf
    best = np.zeros(f.sums.size)
    some = f.sizes > 0
    if x.size:
        best[some] = np.minimum.reduceat(cost, f.start[:-1][some])
    number = np.where(cost == best[f.of], k, x.size + 1)
    chosen = -f.greatest(-number)  # the least
    kept = np.zeros(x.size, dtype=bool)
    kept[order] = k <= chosen[f.of]
    return kept & (f.sums > 0)[f.of]


def sparse(families: Families, price: np.ndarray) -> np.ndarray:
    """`chebyshev` on the support."""
    kept = support(families, price)
    y = np.zeros(families.x.size, dtype=np.int64)
    y[kept] = chebyshev(families.only(kept, families.rank[kept]))
    return y


def is_least_squares(
    families: Families, estimates: np.ndarray, weights: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """By family, whether no unit is better with another child: weighted squares, real estimates."""
    f = families
    last = np.where(y > 0, weights * (2 * (y - estimates) - 1), -np.inf)
    following = weights * (2 * (y - estimates) + 1)
    slack = 1e-6 * f.greatest(weights * (1 + np.abs(estimates)))
    return f.greatest(last) <= -f.greatest(-following) + slack


def _running(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sums up to each value, from the first of its family."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return total[1:] - total[first]


def _least(
    enough: Callable[[np.ndarray], np.ndarray], low: np.ndarray, families: Families
) -> np.ndarray:
    """By family the least t of at least `low` that is enough; the largest x always is."""
    high = np.maximum(low, np.maximum(families.greatest(families.x), 0))
    low = low.copy()
    for _ in range(_HALVINGS):
        if (low >= high).all():
            break
        middle = low + (high - low) // 2
        is_enough = enough(middle)
        high, low = np.where(is_enough, middle, high), np.where(is_enough, low, middle + 1)
        low = np.minimum(low, high)
    return high
