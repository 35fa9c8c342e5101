r"""Exact composition of discrete Gaussians on the lattice of their losses (tier 1).

Coordinate i adds N_Z(0, sigma_i^2) to a count that moves by v_i. The loss is Z + c with
Z = \sum v_i X_i / sigma_i^2 and c = \sum v_i^2 / (2 sigma_i^2). With rational parameters
v_i / sigma_i^2 = h k_i, k_i whole, so Z = h S for an integer S, and 2c = h K.

**The tails repeat.** Shifting every X_i by v_i shows P(S = s) = e^{-h s + c} P(S = s - K), hence

    P(S = s) = e^{-h s^2 / (2K)} g(s),     g(s) = g(-s) = g(s + K):

g on 0..K/2, which lies in the bulk where a Fourier transform is accurate, determines every tail to
full relative accuracy.

**Tilts.** Where K/2 is many standard deviations out, exponential tilts move the bulk:
X_i centred at tau v_i instead of 0 gives a law P_tau with

    g(s) = P_tau(S = s) e^{h (s - tau K)^2 / (2K)} / R,     R = \prod theta_i(0) / theta_i(tau v_i).

**Errors** in g(s), all computed and added to the enclosure [lower, upper]:
- aliasing: P(S = s) <= e^{-h s^2 / (2K)} (sub-Gaussian: Canonne, Kamath and Steinke 2020,
  Corollary 17), so a transform of length N adds, for d = s - tau K and whatever R, at most
  \sum_{j != 0} e^{-h ((d + jN)^2 - d^2) / (2K)} <= 4 e^{-h N (N - 2|d|) / (2K)};
- the characteristic function: its rounding (see `theta`), summed over frequencies and divided by N;
- the transform: at most 16 u log2(N) times the 2-norm of the result, u = 2^-53. The classical
  bound for a power of two has 7 u in place of 16 u: Higham, Accuracy and Stability of Numerical
  Algorithms, 2nd ed., chapter 24.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.accounting.composition import Coordinates, common_step
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray
from trellis.privacy.accounting.distributions.theta import (
    log_characteristic,
    log_normaliser_ratio,
    tilted_moments,
)

LARGEST_TRANSFORM = 2**22
"""Points of the longest Fourier transform: a second of work, a hundred megabytes."""

_LARGEST_PERIOD = 2**23
_REACH = 2.0  # standard deviations that one tilt serves; costs a factor e^2 in accuracy
_MARGIN = 10.0  # in standard deviations; aliases are below 4 e^-50
_FAR = 100.0  # frequencies below e^-100 are left out as soon as this is known
_TAU_BITS = 2**26  # tilts are multiples of this fraction, so tau v and tau K are exact


@dataclass(frozen=True, slots=True, eq=False)
class GaussianLaw:
    """P(S = s) for all s, enclosed: `lower` and `upper` bound g on 0..K/2."""

    step: Fraction
    period: int
    lower: FloatArray
    upper: FloatArray

    @property
    def deviation(self) -> float:
        """Standard deviation of S, an upper bound."""
        return sqrt(self.period / self.step)

    def reach(self, log_floor: float) -> int:
        """An s with P(S >= s) <= e^-log_floor."""
        return ceil(self.deviation * sqrt(2 * log_floor)) + 1

    def losses(self, first: int, last: int) -> FloatArray:
        """The losses h (s + K/2), s from first to last: h times an exact half-integer."""
        half_integers = np.arange(first, last + 1, dtype=np.float64) + self.period / 2
        return float(self.step) * half_integers

    def masses(self, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of P(S = s), with 8 + 4 h s^2 / 2K units for the envelope."""
        s = np.arange(first, last + 1, dtype=np.float64)
        exponent = np.minimum(float(self.step / (2 * self.period)) * s**2, 1e3)
        envelope, slack = np.exp(-exponent), UNIT * (8 + 4 * exponent)
        return (
            envelope * self._repeated(self.lower, first, len(s)) * (1 - slack),
            envelope * self._repeated(self.upper, first, len(s)) * (1 + slack),
        )

    def _repeated(self, half: FloatArray, first: int, count: int) -> FloatArray:
        """Values of g, which is even and periodic, at `count` points from `first` on."""
        mirrored = half[1 : (self.period + 1) // 2][::-1]
        return np.resize(np.roll(np.concatenate([half, mirrored]), -first), count)


def gaussian_law(parts: tuple[Coordinates, ...]) -> GaussianLaw | None:
    """The law of S for these Gaussian coordinates, or None where the lattice does not fit."""
    step, groups, period = _lattice(parts)
    if period > _LARGEST_PERIOD or 2 * _MARGIN * sqrt(period / step) > LARGEST_TRANSFORM:
        return None
    half = period // 2
    lower, upper = np.empty(half + 1), np.empty(half + 1)
    for tau, first, last in _windows(groups, period, half):
        s = np.arange(first, last + 1)
        lower[s], upper[s] = _enclose(groups, step, period, tau, s)
    return GaussianLaw(step, period, lower, upper)


def lattice_deviation(parts: tuple[Coordinates, ...]) -> float:
    """Standard deviation of S in steps of its lattice, about: the work of finding its law."""
    step, _, period = _lattice(parts)
    return sqrt(period / step)


def _lattice(parts: tuple[Coordinates, ...]) -> tuple[Fraction, list[_Group], int]:
    """The step h, what each group of coordinates adds to S, and the period K."""
    step = common_step(part.loss_step for part in parts)
    groups = [_Group.of(part, step) for part in parts]
    return step, groups, sum(group.count * group.multiple * group.shift for group in groups)


@dataclass(frozen=True, slots=True)
class _Group:
    """`count` coordinates, each adding `multiple` * X to S; X is centred at tau * `shift`."""

    sigma_squared: float
    shift: int
    count: int
    multiple: int

    @classmethod
    def of(cls, part: Coordinates, step: Fraction) -> _Group:
        sigma_squared = float(part.mechanism.parameter)
        return cls(sigma_squared, part.shift, part.count, int(part.loss_step / step))


def _windows(groups: list[_Group], period: int, half: int) -> Iterator[tuple[float, int, int]]:
    """Tilts tau, each with the first and last s in 0..half that it serves."""
    taus = np.linspace(0.0, 0.5, 2049)
    means, variances = np.zeros_like(taus), np.zeros_like(taus)
    for group in groups:
        mean, variance = tilted_moments(taus * group.shift, group.sigma_squared)
        means += group.count * group.multiple * mean
        variances += group.count * group.multiple**2 * variance
    tau, last = 0.0, min(half, floor(_REACH * sqrt(variances[0])))
    yield tau, 0, last
    while last < half:
        first = last + 1
        deviation = sqrt(np.interp(tau, taus, variances))
        centre = min(first + _REACH * deviation, period / 2)
        tau = round(float(np.interp(centre, means, taus)) * _TAU_BITS) / _TAU_BITS
        deviation = sqrt(np.interp(tau, taus, variances))
        last = min(half, max(first, floor(centre + _REACH * deviation)))
        yield tau, first, last


def _enclose(
    groups: list[_Group], step: Fraction, period: int, tau: float, s: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Bounds of g(s) from one transform under the tilt tau."""
    distance = s - tau * period
    farthest = float(np.abs(distance).max())
    n = _power_of_two(farthest + sqrt(farthest**2 + _MARGIN**2 * period / step))
    half_rate = float(step / (2 * period))

    law, error = _tilted_law(groups, tau, n)
    log_r = sum(
        group.count * log_normaliser_ratio(tau * group.shift, group.sigma_squared)
        for group in groups
    )
    exponent = half_rate * distance**2 - log_r
    scale = np.exp(exponent)
    slack = UNIT * (32 + 10 * np.abs(exponent) + 20 * log_r)
    alias = 4 * exp(-half_rate * n * (n - 2 * farthest))
    centre, radius = law[s % n] * scale, error * scale * (1 + slack) + alias
    return (
        np.maximum(centre * (1 - slack) - radius, 0.0),
        np.maximum(centre * (1 + slack), 0.0) + radius,
    )


def _tilted_law(groups: list[_Group], tau: float, n: int) -> tuple[FloatArray, float]:
    """P_tau(S = s mod n) for s = 0..n-1, and a bound of the error of each."""
    frequency = np.arange(n // 2 + 1)
    log = log_size = units = np.zeros(n // 2 + 1)
    for group in sorted(groups, key=lambda group: group.count * group.sigma_squared, reverse=True):
        # The phase is reduced in whole numbers: multiple * frequency / n, modulo one turn.
        steps = (group.multiple % n) * frequency + n // 2
        turns = ((steps & (n - 1)) - n // 2) / n
        one = log_characteristic(turns, tau * group.shift, group.sigma_squared)
        log = log + group.count * one.log
        log_size = log_size + group.count * one.log_size
        units = units + group.count * one.units
        seen = np.flatnonzero(log_size > -_FAR)
        frequency, log = frequency[seen], log[seen]
        log_size, units = log_size[seen], units[seen]
    spectrum = np.zeros(n // 2 + 1, dtype=log.dtype)
    spectrum[frequency] = np.exp(np.conj(log))
    law = np.fft.irfft(spectrum, n)
    of_spectrum = UNIT * float(np.sum(np.exp(log_size) * (units + 8)))
    of_transform = 16 * UNIT * log2(n) * sqrt(float(np.sum(law**2)))
    return law, 2.2 * of_spectrum / n + exp(-_FAR) + of_transform


def _power_of_two(least: float) -> int:
    return max(16, 2 ** ceil(log2(least + 1)))
