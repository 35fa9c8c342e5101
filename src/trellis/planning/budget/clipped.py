r"""Bias, variance and mean squared error of a noisy count that is clipped at zero.

With noise Z of a symmetric law and a true count N, max(0, N + Z) errs by max(-N, Z). For whole
noise, with the tails T_k = P[Z <= -k],

    bias = sum_{k > N} T_k,     mse = E[Z^2] / 2 + sum_{k = 1}^{N} (2k - 1) T_k,

and for the continuous laws, with x = N / scale, t = N / sigma, Phi and phi of the normal law,

    Laplace     bias = scale exp(-x) / 2
                mse  = scale^2 (2 - exp(-x) (1 + x))
    Gaussian    bias = sigma (phi(t) - t Phi(-t))
                mse  = sigma^2 (t^2 Phi(-t) + Phi(t) - t phi(t)).

The discrete Laplace law has T_k = q^k / (1 + q) with q = exp(-1 / scale), so its sums are
geometric. The sums of the discrete Gaussian law are added up to sigma = 1000; above, they are the
integrals with the corrections of Euler and Maclaurin, which differ by less than 1e-12 of the value.

Reference for the Laplace law: Ko, Ziani and Fioretto, "Optimal allocation of privacy budget on
hierarchical data release", Propositions 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr

from trellis.errors import InputError

Floats = NDArray[np.float64]
Parameter = float | int | Fraction

_WIDEST_TABLE = 1000.0
"""The sigma up to which discrete Gaussian sums are added up term by term."""
_REACH = 39.0
"""In standard deviations: beyond it exp(-z^2 / (2 sigma^2)) is no longer a double."""
_NIL = 800.0
"""Beyond it exp(-x) is no longer a double."""


@dataclass(frozen=True, slots=True)
class _Law:
    """The moments of max(-N, Z), and the derivative of the second by the law's parameter."""

    bias: Callable[[float, Floats], Floats]
    mse: Callable[[float, Floats], Floats]
    mse_slope: Callable[[float, Floats], Floats]


def clipped_mse(kind: str, parameter: Parameter, counts: ArrayLike) -> Floats:
    """E[(max(0, N + Z) - N)^2] for each true count N.

    `kind` is `laplace` or `discrete_laplace` (parameter: scale), `gaussian` (its variance) or
    `discrete_gaussian` (its sigma_squared).
    """
    return _law(kind).mse(_positive(parameter), whole_counts(counts))


def clipped_bias(kind: str, parameter: Parameter, counts: ArrayLike) -> Floats:
    """E[max(0, N + Z)] - N for each true count N; never negative."""
    return _law(kind).bias(_positive(parameter), whole_counts(counts))


def clipped_variance(kind: str, parameter: Parameter, counts: ArrayLike) -> Floats:
    """Var[max(0, N + Z)] for each true count N."""
    law, value, n = _law(kind), _positive(parameter), whole_counts(counts)
    return law.mse(value, n) - law.bias(value, n) ** 2


def clipped_mse_slope(kind: str, parameter: Parameter, counts: ArrayLike) -> Floats:
    """The derivative of `clipped_mse` by the parameter; positive."""
    return _law(kind).mse_slope(_positive(parameter), whole_counts(counts))


def whole_counts(counts: ArrayLike) -> Floats:
    """Counts as floats; they must be whole numbers of at least zero."""
    given = np.asarray(counts)
    if not given.size:
        return np.zeros(given.shape)
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise InputError("Counts must be whole numbers of at least zero.")
    if given.min() < 0 or (given.dtype.kind == "f" and (given != np.floor(given)).any()):
        raise InputError("Counts must be whole numbers of at least zero.")
    return given.astype(np.float64)


def _law(kind: str) -> _Law:
    if kind not in _LAWS:
        raise InputError(f"There is no noise {kind!r}; use one of {', '.join(_LAWS)}.")
    return _LAWS[kind]


def _positive(parameter: Parameter) -> float:
    value = float(parameter)
    if not 0 < value < inf:
        raise InputError(f"The parameter of noise must be a positive number; {value:g} is not.")
    return value


def _ratio(n: Floats, width: float) -> Floats:
    """N / width, up to where exponentials are nil."""
    return np.minimum(n, _NIL * width) / width


# -- Laplace --------------------------------------------------------------------------------------


def _laplace_bias(scale: float, n: Floats) -> Floats:
    return scale / 2 * np.exp(-_ratio(n, scale))


def _laplace_mse(scale: float, n: Floats) -> Floats:
    x = _ratio(n, scale)
    return scale**2 * (2 - np.exp(-x) * (1 + x))


def _laplace_slope(scale: float, n: Floats) -> Floats:
    x = _ratio(n, scale)
    return scale * (4 - np.exp(-x) * (2 + x * (2 + x)))


# -- discrete Laplace -----------------------------------------------------------------------------


def _geometric(scale: float, n: Floats) -> tuple[float, float, Floats]:
    """Of the law: q = exp(-1/scale), d = 1 - q without cancellation, and q^N."""
    return np.exp(-1 / scale), -np.expm1(-1 / scale), np.exp(-_ratio(n, scale))


def _discrete_laplace_bias(scale: float, n: Floats) -> Floats:
    q, d, power = _geometric(scale, n)
    return power * q / ((1 + q) * d)


def _discrete_laplace_mse(scale: float, n: Floats) -> Floats:
    """The sum is q / d^2 + P / (d^2 (1 + q)) with P = q (1 + q) (1 - q^N) - 2 N d q^(N + 1)."""
    q, d, power = _geometric(scale, n)
    p = q * (1 + q) * (1 - power) - 2 * n * d * power * q
    return (q + p / (1 + q)) / d**2


def _discrete_laplace_slope(scale: float, n: Floats) -> Floats:
    q, d, power = _geometric(scale, n)
    p = q * (1 + q) * (1 - power) - 2 * n * d * power * q
    rise = (1 + 2 * q) * (1 - power) - n * (1 + q) * power
    rise += 2 * n * q * power - 2 * n * (n + 1) * d * power  # dP / dq
    by_q = (1 + q) / d**3 + (rise - p / (1 + q) + 2 * p / d) / (d**2 * (1 + q))
    return by_q * q / scale / scale


# -- Gaussian -------------------------------------------------------------------------------------


def _normal(variance: float, n: Floats) -> tuple[float, Floats, Floats]:
    """sigma, t = N / sigma and the density phi(t)."""
    sigma = sqrt(variance)
    t = _ratio(n, sigma)
    return sigma, t, np.exp(-t * t / 2) / sqrt(2 * pi)


def _gaussian_bias(variance: float, n: Floats) -> Floats:
    sigma, t, density = _normal(variance, n)
    return sigma * density * (1 - t * sqrt(pi / 2) * erfcx(t / sqrt(2)))


def _gaussian_mse(variance: float, n: Floats) -> Floats:
    _, t, density = _normal(variance, n)
    return variance * (t * t * ndtr(-t) + ndtr(t) - t * density)


def _gaussian_slope(variance: float, n: Floats) -> Floats:
    """E[Z^2; Z > -t] of the standard normal law."""
    _, t, density = _normal(variance, n)
    return ndtr(t) - t * density


# -- discrete Gaussian ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """P[Z = z] and the squares for z = 0, 1, .. as far as doubles reach."""

    probability: Floats
    square: Floats

    @classmethod
    def of(cls, sigma_squared: float) -> _Table:
        square = np.arange(ceil(_REACH * sqrt(sigma_squared)) + 2, dtype=np.float64) ** 2
        weight = np.exp(-square / 2 / sigma_squared)
        return cls(weight / (1 + 2 * weight[1:].sum()), square)

    @property
    def tails(self) -> Floats:
        """T_k = P[Z <= -k] for k = 0, 1, .."""
        return _sums_from(self.probability)

    def at(self, by_count: Floats, n: Floats) -> Floats:
        """Look up values that stay the same beyond the table."""
        return by_count[np.minimum(n, by_count.size - 1).astype(np.int64)]


def _sums_from(values: Floats) -> Floats:
    """Sums of all values from each position on."""
    return np.cumsum(values[::-1])[::-1]


def _odd_sums(tails: Floats) -> Floats:
    """sum_{k = 1}^{N} (2k - 1) T_k for N = 0, 1, .."""
    terms = (2 * np.arange(tails.size) - 1) * tails
    terms[0] = 0
    return np.cumsum(terms)


def _discrete_gaussian_bias(sigma_squared: float, n: Floats) -> Floats:
    if sigma_squared > _WIDEST_TABLE**2:
        _, t, density = _normal(sigma_squared, n)
        edge = density / sqrt(sigma_squared)
        third = (t * t - 1) / sigma_squared
        return _gaussian_bias(sigma_squared, n) + edge * (third / 240 - 1 / 12)
    table = _Table.of(sigma_squared)
    return table.at(np.append(_sums_from(table.tails)[1:], 0.0), n)


def _discrete_gaussian_mse(sigma_squared: float, n: Floats) -> Floats:
    if sigma_squared > _WIDEST_TABLE**2:
        _, t, density = _normal(sigma_squared, n)
        return _gaussian_mse(sigma_squared, n) + t * density / 6
    table = _Table.of(sigma_squared)
    half = (table.square * table.probability).sum()
    return half + table.at(_odd_sums(table.tails), n)


def _discrete_gaussian_slope(sigma_squared: float, n: Floats) -> Floats:
    """Cov(max(-N, Z)^2, Z^2) / (2 sigma^4), as for any exponential family."""
    if sigma_squared > _WIDEST_TABLE**2:
        return _gaussian_slope(sigma_squared, n)
    table = _Table.of(sigma_squared)
    weighted = table.square * table.probability
    fourth = table.square * weighted
    beyond = np.append(_sums_from(weighted)[1:], 0.0)
    product = fourth.sum() + np.cumsum(fourth) + table.square * beyond
    mse = weighted.sum() + _odd_sums(table.tails)
    covariance = product - mse * 2 * weighted.sum()
    return table.at(covariance, n) / 2 / sigma_squared / sigma_squared


_LAWS = {
    "laplace": _Law(_laplace_bias, _laplace_mse, _laplace_slope),
    "discrete_laplace": _Law(
        _discrete_laplace_bias, _discrete_laplace_mse, _discrete_laplace_slope
    ),
    "gaussian": _Law(_gaussian_bias, _gaussian_mse, _gaussian_slope),
    "discrete_gaussian": _Law(
        _discrete_gaussian_bias, _discrete_gaussian_mse, _discrete_gaussian_slope
    ),
}
