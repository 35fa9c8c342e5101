"""Slow twins of the Chebyshev projection and of the choice of a support."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from oracles.projection import priorities


def least_distance(x: Sequence[int], total: int) -> int:
    """The least t such that some y in [max(0, x - t), x + t] sums to `total`: no cleverness."""
    t = 0
    while True:
        low = [max(0, value - t) for value in x]
        high = [value + t for value in x]
        if min(high) >= 0 and sum(low) <= total <= sum(high):
            return t
        t += 1


def take_one_by_one(
    x: Sequence[int], total: int, *, descending: bool = False, seed: int = 0, first_index: int = 0
) -> list[int]:
    """IntOpt as it was published: one child after the other, t rising by one in each round.

    The published loop never ends for total = 0 in its fast form; in this one all y are 0.
    """
    rank = priorities(seed, first_index, len(x))
    missing = total - sum(x)
    z = [max(-(-missing // len(x)), -value) for value in x]
    t = max(map(abs, z))
    sign = -1 if descending else 1
    order = sorted(range(len(x)), key=lambda i: (sign * x[i], rank[i]))
    while sum(z) > missing:
        for i in order:
            z[i] = max(z[i] - (sum(z) - missing), -x[i], -t)
        t += 1
    return [value + change for value, change in zip(x, z, strict=True)]


def cheapest_support(x: Sequence[int], total: int, price: float) -> float:
    """The least cost over all supports with real, non-negative values on them, by enumeration."""
    best = float("inf")
    for size in range(1, len(x) + 1):
        for chosen in combinations(range(len(x)), size):
            inside = sum(x[i] for i in chosen)
            if min(x[i] for i in chosen) + (total - inside) / size < 0:
                continue
            outside = sum(value**2 for i, value in enumerate(x) if i not in chosen)
            best = min(best, outside + (total - inside) ** 2 / size + price * size)
    return best
