"""Noise with its price: exact parameters in, exact samples and exact costs out.

The samplers are imported when the first sample is drawn, so that commands which only state a
price need not wait for Numba.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral
from reprlib import repr as short_repr
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trellis.errors import PrivacyError
from trellis.privacy.bits import OsRandom, RandomBits
from trellis.privacy.thresholds import Decay

Exact = int | Fraction | Decimal | str
"""A number without rounding; text is a decimal ("68.49", "1e3") or a quotient ("10/73")."""

_SMALLEST = Fraction(1, 10**300)
_LARGEST_SCALE = 2**50  # |Z| >= 2^62 then has probability below exp(-4000), so int64 holds Z


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    r"""Integer noise with P[Z = z] \propto exp(-z^2 / (2 sigma^2)).

    A query of squared L2 sensitivity d costs

        rho = d / (2 sigma^2)     (zero-concentrated DP).

    `sigma_squared` is the parameter, not the variance of Z, which is a little smaller.

    Reference: Canonne, Kamath and Steinke, NeurIPS 2020, arXiv:2004.00010.
    """

    name: ClassVar[str] = "discrete_gaussian"
    sigma_squared: Fraction

    def __init__(self, sigma_squared: Exact) -> None:
        exact = _exact_parameter("sigma_squared", sigma_squared, _LARGEST_SCALE**2)
        object.__setattr__(self, "sigma_squared", exact)

    @property
    def parameter(self) -> Fraction:
        """sigma_squared, under the name all mechanisms share."""
        return self.sigma_squared

    @property
    def variance(self) -> float:
        r"""E[Z^2] of the discrete law, to about 1e-15 of itself.

        With a = 1 / (2 sigma^2) and m(a) the mean of z^2 under weights exp(-a z^2), Poisson
        summation (Jacobi's identity for theta_3) gives m(a) = 1/(2a) - (\pi/a)^2 m(\pi^2/a).
        The side that converges faster is summed.
        """
        if self.sigma_squared <= Fraction(1, 2):
            return _mean_square(1 / (2 * self.sigma_squared))
        sigma_squared = float(self.sigma_squared)
        dual = _mean_square(Fraction(2 * math.pi**2) * self.sigma_squared)
        return sigma_squared * (1 - 4 * math.pi**2 * sigma_squared * dual)

    def rho(self, l2_squared: int) -> Fraction:
        """What a query of squared L2 sensitivity `l2_squared` costs in zero-concentrated DP."""
        return _whole("l2_squared", l2_squared) / (2 * self.sigma_squared)

    def sample(self, n: int, bits: RandomBits | None = None) -> NDArray[np.int64]:
        """`n` independent draws, from the operating system's randomness unless `bits` is given."""
        return _sample(Decay(Fraction(0), 1 / (2 * self.sigma_squared)), n, bits)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    r"""Integer noise with P[Z = z] \propto exp(-|z| / scale), the two-sided geometric law.

    A query of L1 sensitivity d costs

        epsilon = d / scale     (pure DP).

    Each coordinate that moves by d_i is (d_i / scale)-DP and so (d_i / scale)^2 / 2-zCDP. They are
    independent, so a query of squared L2 sensitivity D costs

        rho = D / (2 scale^2)     (zCDP),

    which is never more than epsilon^2 / 2.

    References: Ghosh, Roughgarden and Sundararajan, STOC 2009, arXiv:0811.2841 (the law); Bun and
    Steinke, TCC 2016, arXiv:1605.02065 (from pure DP to zCDP).
    """

    name: ClassVar[str] = "discrete_laplace"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        object.__setattr__(self, "scale", _exact_parameter("scale", scale, _LARGEST_SCALE))

    @property
    def parameter(self) -> Fraction:
        """The scale, under the name all mechanisms share."""
        return self.scale

    @property
    def variance(self) -> float:
        """E[Z^2] = 2 q / (1 - q)^2 with q = exp(-1 / scale)."""
        return 2 * _exp_minus(1 / self.scale) / math.expm1(-float(1 / self.scale)) ** 2

    def epsilon(self, l1: int) -> Fraction:
        """What a query of L1 sensitivity `l1` costs in pure DP."""
        return _whole("l1", l1) / self.scale

    def rho(self, l2_squared: int) -> Fraction:
        """What a query of squared L2 sensitivity `l2_squared` costs in zero-concentrated DP."""
        return _whole("l2_squared", l2_squared) / (2 * self.scale**2)

    def sample(self, n: int, bits: RandomBits | None = None) -> NDArray[np.int64]:
        """`n` independent draws, from the operating system's randomness unless `bits` is given."""
        return _sample(Decay(1 / self.scale, Fraction(0)), n, bits)


Mechanism = DiscreteGaussian | DiscreteLaplace

_BY_NAME = {kind.name: kind for kind in (DiscreteGaussian, DiscreteLaplace)}


def mechanism(name: str, parameter: Exact) -> Mechanism:
    """The mechanism a spec or a ledger names, with its sigma_squared or scale."""
    if name not in _BY_NAME:
        raise PrivacyError(
            f"There is no mechanism {_shown(name)}. Use one of: {', '.join(_BY_NAME)}."
        )
    return _BY_NAME[name](parameter)


def _sample(decay: Decay, n: int, bits: RandomBits | None) -> NDArray[np.int64]:
    from trellis.privacy.rejection_sampler import block_law, block_width, sample_by_rejection
    from trellis.privacy.table_sampler import sample_by_table, threshold_table

    n = _whole("the number of samples", n)
    bits = OsRandom() if bits is None else bits
    width = block_width(decay)
    if width == 1:
        return sample_by_table(threshold_table(decay, sides=2), n, bits)
    return sample_by_rejection(block_law(decay, width), n, bits)


def _exact_parameter(what: str, value: object, largest: int) -> Fraction:
    exact = _exact(what, value)
    if exact <= 0:
        raise PrivacyError(f"{what} = {_shown(value)} is not positive.")
    if not _SMALLEST <= exact <= largest:
        raise PrivacyError(
            f"{what} = {_shown(value)} is outside [1e-300, {float(largest):.3g}], "
            "beyond which noise is nil or outgrows 64-bit integers."
        )
    return exact


def _exact(what: str, value: object) -> Fraction:
    if isinstance(value, float | np.floating):
        raise PrivacyError(
            f"{what} = {value} is a float, which is not exact; "
            'pass a string such as "68.49" or a Fraction.'
        )
    try:
        number = _read(value) if isinstance(value, str) else value
        # As a Fraction, 1e999999999 would fill the memory.
        if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) < 1000:
            return Fraction(number)
        if isinstance(number, Integral | Fraction) and not isinstance(number, bool):
            # A Fraction may have been made of NumPy integers, which wrap around.
            return Fraction(int(number.numerator), int(number.denominator))
    except (ValueError, ZeroDivisionError, InvalidOperation):
        pass
    raise PrivacyError(
        f"{what} = {_shown(value)} is not an exact number, or far too large or small; "
        'pass a whole number, a Fraction or a string such as "68.49" or "10/73".'
    )


def _read(text: str) -> Fraction | Decimal:
    return Fraction(text) if "/" in text else Decimal(text)


def _whole(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise PrivacyError(f"{what} = {_shown(value)} is not a whole number >= 0.")
    return int(value)


def _shown(value: object) -> str:
    """A short text on one line; Python declines to write integers of more than 4,300 digits."""
    too_long = isinstance(value, int) and value.bit_length() > 1000
    return "a number of hundreds of digits" if too_long else short_repr(value)


def _mean_square(rate: Fraction) -> float:
    """The mean of z^2 over all integers z with weights exp(-rate z^2), for rate >= 1."""
    weights = [(z * z, _exp_minus(z * z * rate)) for z in range(1, 9)]
    return 2 * sum(square * w for square, w in weights) / (1 + 2 * sum(w for _, w in weights))


def _exp_minus(x: Fraction) -> float:
    """exp(-x), where a plain float x would bring in a relative error of x 2^-53."""
    if x > 800:  # below the least float
        return 0.0
    head = float(x)
    return math.exp(-head) * (1 - float(x - Fraction(head)))
