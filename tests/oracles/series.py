r"""delta as a closed series, for any real sigma^2 >= 2: a cross-check, not a certificate (tier 0).

Poisson summation over the d coordinates turns the sum over outcomes into

    delta(eps) = \Theta^{-1} \sum_{u in Z^d} e^{-2 \pi^2 D(u)} I(U / mu^2),
    U = \sum u_i v_i,   mu^2 = \sum v_i^2 / sigma_i^2,   D(u) = \sum sigma_i^2 u_i^2 - U^2 / mu^2,
    \Theta = \prod_i \sum_u e^{-2 \pi^2 sigma_i^2 u^2},

with, for z_0 = eps - mu^2 / 2 and a = (z_0 / mu + 2 \pi i nu mu) / sqrt 2,

    I(nu) = e^{-z_0^2 / (2 mu^2) - 2 \pi i nu z_0} (erfcx(a) - erfcx(a + mu / sqrt 2)) / 2.

The term u = 0 is Gaussian DP, which alone bounds nothing for discrete noise. D(u) is the squared
distance of u from the line through (v_i / sigma_i^2), so the terms that count have u_i close to
t v_i / sigma_i^2 for some t; they are found by walking along t. Terms fall like 1 / t^2, and those
beyond the walk's end are estimated from its second half.

It shares no code with the other tiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.errors import PrivacyError
from trellis.privacy.accounting.distributions.losses import FloatArray

_STEPS = 2**18
_LARGEST_D = 2.0  # e^{-2 pi^2 D} = 1e-17


@dataclass(frozen=True, slots=True)
class RealGaussian:
    """`count` coordinates with discrete Gaussian noise of any real parameter."""

    sigma_squared: float
    count: int = 1
    shift: int = 1


class SeriesValue(NamedTuple):
    """A value and an estimate of what its truncated terms may add."""

    value: float
    error: float


def series_delta(groups: Sequence[RealGaussian], epsilon: float) -> SeriesValue:
    """The delta at `epsilon` >= 0."""
    if not groups or any(not 2 <= group.sigma_squared < np.inf for group in groups):
        raise PrivacyError("The series needs sigma_squared of at least 2; use an Accountant.")
    sigma_squared = np.array([group.sigma_squared for group in groups])
    count = np.array([group.count for group in groups])
    shift = np.array([group.shift for group in groups])
    mu_squared = float(np.sum(count * shift**2 / sigma_squared))

    totals = _totals_near_line(sigma_squared, count, shift, mu_squared)
    each, ones = np.divmod(totals, count)
    squares = count * each**2 + ones * (2 * each + 1)
    ways = np.prod(np.where(np.minimum(ones, count - ones) == 1, count, 1), axis=1)
    u = (totals @ shift).astype(np.float64)
    distance = np.maximum(squares @ sigma_squared - u**2 / mu_squared, 0.0)
    integral = _integral(u / mu_squared, epsilon, mu_squared)
    terms = np.where(u > 0, 2, 1) * ways * np.exp(-2 * pi**2 * distance) * integral

    theta = float(np.prod((1 + 2 * np.exp(-2 * pi**2 * sigma_squared)) ** count))
    late = float(np.sum(np.abs(terms[u > u.max() / 2])))
    return SeriesValue(float(np.sum(terms)) / theta, 4 * late / theta)


def _totals_near_line(
    sigma_squared: FloatArray, count: NDArray[np.int64], shift: NDArray[np.int64], mu_squared: float
) -> NDArray[np.int64]:
    """Sums of u within each group, for u = 0 and all u with U > 0 found close to the line.

    Within a group the u_i are equal, or one of them is off by one: more cost too much.
    """
    t = np.arange(_STEPS)[:, None] * (0.5 / sqrt(mu_squared))
    target = t * (shift / sigma_squared)
    vectors = np.round(target)
    close = ((vectors - target) ** 2) @ (count * sigma_squared) < 1.1 * _LARGEST_D
    equal = np.unique(vectors[close].astype(np.int64) * count, axis=0)
    one_off = np.eye(len(count), dtype=np.int64)[count > 1]
    totals = np.concatenate(
        [equal, *(equal + row for row in one_off), *(equal - row for row in one_off)]
    )
    totals = np.unique(totals, axis=0)
    return totals[(totals @ shift > 0) | ~totals.any(axis=1)]


def _integral(nu: FloatArray, epsilon: float, mu_squared: float) -> FloatArray:
    """The real part of I(nu)."""
    from scipy.special import erfcx  # takes longer to import than all of accounting

    mu, z0 = sqrt(mu_squared), epsilon - mu_squared / 2
    a = (z0 / mu + 2j * pi * mu * nu) / sqrt(2)
    difference = erfcx(a) - erfcx(a + mu / sqrt(2))
    return exp(-(z0**2) / (2 * mu_squared)) * np.real(np.exp(-2j * pi * nu * z0) * difference) / 2
