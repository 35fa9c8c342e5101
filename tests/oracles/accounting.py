"""Privacy by brute force: every outcome listed, losses as exact fractions, 70-digit masses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import mpmath
from mpmath import mp

from trellis.privacy.accounting import Composition, Coordinates
from trellis.privacy.mechanisms import DiscreteGaussian

BITS = 240  # masses are whole multiples of 2^-240 = 1e-72, rounded down
PRECISION = BITS + 20


@dataclass(frozen=True)
class Law:
    """Masses at whole multiples of `step` under one neighbour; 1e-60 may be missing in all."""

    step: Fraction
    masses: dict[int, int]

    def atoms(self) -> list[tuple[Fraction, mpmath.mpf]]:
        """Losses from the largest down, each with its mass."""
        return [(k * self.step, mp.ldexp(self.masses[k], -BITS)) for k in sorted(self.masses)[::-1]]


@mp.workprec(PRECISION)
def loss_law(composition: Composition) -> Law:
    """Convolve the coordinates one by one."""
    ones = [(_one_coordinate(part), part.count) for part in composition.parts]
    losses = [loss for one, _ in ones for loss in one]
    denominator = lcm(*(loss.denominator for loss in losses))
    step = Fraction(gcd(*(int(loss * denominator) for loss in losses)) or 1, denominator)
    law = {0: 1 << BITS}
    for one, count in ones:
        scaled = {int(loss / step): int(mp.ldexp(mass, BITS)) for loss, mass in one.items()}
        for _ in range(count):
            law = _convolve(law, scaled)
    return Law(step, law)


@mp.workprec(PRECISION)
def delta(law: Law, epsilon: float) -> mpmath.mpf:
    above = [(loss, mass) for loss, mass in law.atoms() if loss > Fraction(epsilon)]
    return mp.fsum(mass * -mp.expm1(mp.mpf(epsilon) - _exact(loss)) for loss, mass in above)


@mp.workprec(PRECISION)
def tradeoff(law: Law, alpha: float) -> mpmath.mpf:
    """Reject the outcomes of largest loss first, the last one at random (Neyman and Pearson)."""
    left, power = mp.mpf(alpha), mp.mpf(0)
    for loss, mass in law.atoms():
        under_null = mass * mp.exp(-_exact(loss))
        if under_null >= left:
            return 1 - power - mass * left / under_null
        left -= under_null
        power += mass
    return mp.mpf(0)


def _one_coordinate(part: Coordinates) -> dict[Fraction, mpmath.mpf]:
    """The law of log P(x) / P(x - shift) for noise x, added up over all x that matter."""
    gaussian = isinstance(part.mechanism, DiscreteGaussian)
    parameter = part.mechanism.parameter

    def exponent(x: int) -> Fraction:
        return x * x / (2 * parameter) if gaussian else abs(x) / parameter

    weights: dict[int, mpmath.mpf] = {}
    x = 0
    while not weights or weights[x - 1] > mp.ldexp(1, -BITS):
        weights[x] = weights[-x] = mp.exp(-_exact(exponent(x)))
        x += 1
    total = mp.fsum(weights.values())
    law: dict[Fraction, mpmath.mpf] = defaultdict(mp.mpf)
    for x, weight in weights.items():
        law[exponent(x - part.shift) - exponent(x)] += weight / total
    return law


def _convolve(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    law: dict[int, int] = defaultdict(int)
    for loss, mass in one.items():
        for more, factor in other.items():
            law[loss + more] += mass * factor
    return {loss: mass >> BITS for loss, mass in law.items() if mass >> BITS}


def _exact(value: Fraction) -> mpmath.mpf:
    return mp.mpf(value.numerator) / value.denominator
