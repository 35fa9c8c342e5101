r"""Exact composition of discrete Laplace coordinates.

Noise of scale b on a count that moves by v has the loss (v - 2 min(max(X, 0), v)) / b: the v + 1
values v/b, (v-2)/b, ..., -v/b, with probabilities, for q = e^{-1/b},

    1 / (1+q),     q^x (1-q) / (1+q)  (x = 1..v-1),     q^v / (1+q).

For v = 1 this is randomised response. Sums of independent losses are built by direct
convolution: all terms are positive, so every atom keeps its relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.accounting.composition import Coordinates, common_step
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray

_MOST_ATOMS = 2**17
_MOST_PRODUCTS = 2**23
_UNDERFLOW = 1e-280  # far above what products of doubles lose


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceLaw:
    """Atoms of the total loss, in increasing order.

    Each mass is true to the relative error `rounding`. Atoms that underflowed weigh less than
    `lost` together; none of them has a larger loss than the last.
    """

    losses: FloatArray
    masses: FloatArray
    rounding: float
    lost: float

    def mass_bounds(self) -> tuple[FloatArray, FloatArray]:
        upper = self.masses * (1 + self.rounding)
        upper[-1] += self.lost
        return self.masses * (1 - self.rounding), upper


def laplace_law(parts: tuple[Coordinates, ...]) -> LaplaceLaw | None:
    """The law of the total loss of Laplace coordinates, or None where it has too many atoms."""
    step = common_step(part.loss_step for part in parts)
    top = sum((part.count * part.shift * part.loss_step for part in parts), step * 0)
    if any(part.count * part.shift > 2**15 for part in parts) or top / step > 2**52:
        return None
    positions, masses, units = np.zeros(1, dtype=np.int64), np.ones(1), 0.0
    for part in parts:
        more, more_units = _sum_of_equals(part)
        if len(masses) * len(more) > _MOST_PRODUCTS:
            return None
        at = positions[:, None] + int(part.loss_step / step) * np.arange(len(more))
        positions, masses = _merge(at.reshape(-1), np.outer(masses, more).reshape(-1))
        units += more_units + len(more) + 4
        if len(masses) > _MOST_ATOMS:
            return None
    # S = 0 has the largest loss, top / 2; both are whole multiples of step / 2.
    losses = float(step / 2) * (int(top / step) - 2 * positions)[::-1].astype(np.float64)
    small = masses < _UNDERFLOW / _MOST_ATOMS
    masses = np.where(small, 0.0, masses)[::-1]
    return LaplaceLaw(losses, masses, units * UNIT, _UNDERFLOW if small.any() else 0.0)


def _merge(
    positions: NDArray[np.int64], masses: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Sum masses that share a position; positions come out sorted."""
    distinct, which = np.unique(positions, return_inverse=True)
    return distinct, np.bincount(which, weights=masses).astype(np.float64)


def _sum_of_equals(part: Coordinates) -> tuple[FloatArray, float]:
    """Masses of the sum of `count` equal coordinates by x = 0..count*shift, and their error.

    A mass of one coordinate has x/b + 8 units. Squaring doubles the error and adds one unit per
    term: over all squarings and products at most 2 (v + 1) (log2 n + 1) units per coordinate.
    """
    rate = float(1 / part.mechanism.parameter)
    x = np.arange(part.shift + 1)
    one = np.exp(-rate * x) / (1 + np.exp(-rate))
    one[1:-1] *= -np.expm1(-rate)
    units = part.count * (8 + 4 * rate * part.shift + 2 * (part.shift + 1) * (log2(part.count) + 1))
    total, square, n = np.ones(1), one, part.count
    while n:
        if n % 2:
            total = np.convolve(total, square)
        n //= 2
        if n:
            square = np.convolve(square, square)
    return total, units
