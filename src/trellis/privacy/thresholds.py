"""Cumulative probabilities of two-sided integer noise, rounded down with proof.

Only Python integers are used. A number x in [0, ∞) is held as a pair of whole numbers
`lower <= 2^precision x <= upper`, and every operation rounds the pair outwards. A floor is
accepted once both ends agree on it; otherwise the computation is repeated more precisely.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_GUARD_BITS = 64


@dataclass(frozen=True, slots=True)
class Decay:
    """Weights exp(-(linear m + quadratic m²)) of the magnitudes m = 0, 1, 2, ..."""

    linear: Fraction
    quadratic: Fraction

    def exponent(self, m: int) -> Fraction:
        """What the weight of m is the negative exponential of."""
        return m * (self.linear + m * self.quadratic)

    def at_multiples_of(self, step: int) -> Decay:
        """The weights of 0, step, 2 step, ... as a decay of their own."""
        return Decay(step * self.linear, step * step * self.quadratic)


@lru_cache(maxsize=16)
def cumulative_thresholds(decay: Decay, sides: int, bits: int) -> tuple[int, ...]:
    """t_k = floor(2^bits P(M <= k)) for k = 0, 1, ..., up to the first t_k = 2^bits - 1.

    M = 0 has weight 1 and M = m > 0 has weight `sides` exp(-exponent(m)): with two sides M is
    the magnitude of a symmetric variable. All later thresholds are 2^bits - 1 as well.
    """
    guard = _GUARD_BITS
    while (floors := _agreed_floors(decay, sides, bits, bits + guard)) is None:
        guard *= 2
    return floors


def floor_of_exp(exponent: Fraction, bits: int) -> int:
    """floor(2^bits exp(-exponent)) for exponent >= 0."""
    guard = _GUARD_BITS
    while True:
        lower, upper = _exp_bounds(exponent, bits + guard)
        if lower >> guard == upper >> guard:
            return lower >> guard
        guard *= 2


def _agreed_floors(decay: Decay, sides: int, bits: int, precision: int) -> tuple[int, ...] | None:
    lower_sums, upper_sums, upper_rest = _partial_sums(decay, sides, precision)
    lower_total, upper_total = lower_sums[-1], upper_sums[-1] + upper_rest
    largest = (1 << bits) - 1  # P(M <= k) < 1, so no floor exceeds it
    floors: list[int] = []
    for lower_sum, upper_sum in zip(lower_sums, upper_sums, strict=True):
        floor = (lower_sum << bits) // upper_total
        if floor != min((upper_sum << bits) // lower_total, largest):
            return None
        floors.append(floor)
        if floor == largest:
            return tuple(floors)
    return None


def _partial_sums(decay: Decay, sides: int, precision: int) -> tuple[list[int], list[int], int]:
    """Bounds of the weights' partial sums until a weight vanishes, and of all that follows.

    weight(m + 1) = weight(m) ratio(m) and ratio(m + 1) = ratio(m) exp(-2 quadratic). Ratios
    never grow, so what follows m is at most the geometric series weight(m) ratio / (1 - ratio).
    """
    one = 1 << precision
    up = one - 1
    lower_ratio, upper_ratio = _exp_bounds(decay.linear + decay.quadratic, precision)
    lower_slope, upper_slope = _exp_bounds(2 * decay.quadratic, precision)
    lower_weight = upper_weight = sides * one
    lower_sums, upper_sums = [one], [one]
    while True:
        lower_weight = (lower_weight * lower_ratio) >> precision
        upper_weight = (upper_weight * upper_ratio + up) >> precision
        lower_sums.append(lower_sums[-1] + lower_weight)
        upper_sums.append(upper_sums[-1] + upper_weight)
        lower_ratio = (lower_ratio * lower_slope) >> precision
        upper_ratio = (upper_ratio * upper_slope + up) >> precision
        if not lower_weight:
            return lower_sums, upper_sums, -(-upper_weight * upper_ratio // (one - upper_ratio))


def _exp_bounds(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Bounds of 2^precision exp(-exponent), exponent >= 0.

    exp(-x) = (1 / exp(x / 2^halvings))^(2^halvings), where x / 2^halvings <= 1/2 makes each term
    of the power series at most half the one before: what is cut off is at most the last term.
    """
    if exponent >= precision:
        return 0, 1
    halvings = int(exponent).bit_length() + 1
    extra = halvings + 8
    shift = precision + extra
    one, up = 1 << shift, (1 << shift) - 1
    lower_step = (exponent.numerator << (shift - halvings)) // exponent.denominator
    upper_step = lower_step + 1 if exponent else 0

    lower = lower_term = upper = upper_term = one
    n = 0
    while lower_term:
        n += 1
        lower_term = ((lower_term * lower_step) >> shift) // n
        upper_term = -(-((upper_term * upper_step + up) >> shift) // n)
        lower += lower_term
        upper += upper_term
    upper += upper_term

    lower, upper = (one << shift) // upper, -(-(one << shift) // lower)
    for _ in range(halvings):
        lower, upper = (lower * lower) >> shift, (upper * upper + up) >> shift
    return lower >> extra, -((-upper) >> extra)
