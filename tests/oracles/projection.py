"""Exact, slow twins of the projection kernels, in rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def splitmix(state: int) -> int:
    """SplitMix64's output for a state, in Python's integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def priorities(seed: int, first_index: int, size: int) -> list[int]:
    key = splitmix((seed + STEP) & MASK)
    return [splitmix((key + (first_index + i) * STEP) & MASK) for i in range(size)]


def objective(y: Sequence[int], x: Sequence, weights: Sequence | None = None) -> Fraction:
    """The weighted sum of squares over children that are neither fixed nor unknown."""
    weights = [1] * len(x) if weights is None else weights
    return sum(
        (
            Fraction(w) * (Fraction(int(a)) - Fraction(b)) ** 2
            for a, b, w in zip(y, x, weights, strict=True)
            if w != inf
        ),
        Fraction(0),
    )


def least_objective(x: Sequence, total: int, weights: Sequence | None = None) -> Fraction:
    """The minimum over all ways to share `total`, one child after the other; no convexity used."""
    weights = [1] * len(x) if weights is None else weights
    best = [Fraction(0)] + [Fraction(10**30)] * total  # nothing is shared out yet
    for value, weight in zip(x, weights, strict=True):
        cost = [Fraction(weight) * (k - Fraction(value)) ** 2 for k in range(total + 1)]
        best = [
            min(best[reached - k] + cost[k] for k in range(reached + 1))
            for reached in range(total + 1)
        ]
    return best[total]


def buy_cheapest_units(
    x: Sequence, total: int, weights: Sequence | None = None, seed: int = 0, first_index: int = 0
) -> list[int]:
    """Buy the cheapest unit `total` times; ties by second-order cost, then by priority.

    Units of children of weight zero cost nothing, so they are compared by what they would cost
    at weight one.
    """
    weights = [1] * len(x) if weights is None else weights
    rank = priorities(seed, first_index, len(x))
    y = [int(value) if w == inf else 0 for value, w in zip(x, weights, strict=True)]
    free = [i for i, w in enumerate(weights) if w != inf]

    def cost(i: int) -> tuple[Fraction, Fraction, int]:
        unit = 2 * y[i] + 1 - 2 * Fraction(x[i])
        weight = Fraction(weights[i])
        return weight * unit, Fraction(0) if weight else unit, rank[i]

    for _ in range(total - sum(y)):
        y[min(free, key=cost)] += 1
    return y
