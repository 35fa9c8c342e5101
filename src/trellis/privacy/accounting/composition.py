"""What an accountant accounts for: noisy coordinates that move between neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from numbers import Integral
from reprlib import repr as short_repr

from trellis.errors import PrivacyError
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism


@dataclass(frozen=True, slots=True)
class Coordinates:
    """`count` whole numbers, each with its own noise, each `shift` apart between neighbours."""

    mechanism: Mechanism
    count: int = 1
    shift: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, DiscreteGaussian | DiscreteLaplace):
            raise PrivacyError(
                f"The accountant has no law for {short_repr(self.mechanism)}. "
                "Use a DiscreteGaussian or a DiscreteLaplace."
            )
        object.__setattr__(self, "count", whole("count", self.count))
        object.__setattr__(self, "shift", whole("shift", self.shift))

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated DP: shift^2 / (2 sigma^2), or half the square of the pure epsilon."""
        return self.count * self.mechanism.rho(self.shift**2)

    @property
    def loss_step(self) -> Fraction:
        """Losses of one coordinate lie this far apart, symmetrically about zero."""
        if isinstance(self.mechanism, DiscreteGaussian):
            return self.shift / self.mechanism.sigma_squared
        return 2 / self.mechanism.scale


@dataclass(frozen=True, slots=True)
class Composition:
    """Independent coordinates; equal ones are merged and all are put in a fixed order.

    Every pair of neighbours is described by the loss L = log P(output) / Q(output). All our
    laws are symmetric: L under P has the law of -L under Q, so one curve serves both ways.
    """

    parts: tuple[Coordinates, ...]

    @classmethod
    def of(cls, parts: Iterable[Coordinates]) -> Composition:
        counts: Counter[tuple[Mechanism, int]] = Counter()
        for part in parts:
            counts[part.mechanism, part.shift] += part.count
        merged = [Coordinates(mechanism, n, shift) for (mechanism, shift), n in counts.items()]
        if not merged:
            raise PrivacyError("Nothing to account for: add a mechanism to the accountant first.")
        return cls(tuple(sorted(merged, key=_order)))

    @property
    def gaussian(self) -> tuple[Coordinates, ...]:
        return tuple(p for p in self.parts if isinstance(p.mechanism, DiscreteGaussian))

    @property
    def laplace(self) -> tuple[Coordinates, ...]:
        return tuple(p for p in self.parts if isinstance(p.mechanism, DiscreteLaplace))

    @property
    def rho(self) -> Fraction:
        return _sum_of_rho(self.parts)

    @property
    def n_coordinates(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The largest possible loss, or None where Gaussian noise leaves it unbounded."""
        if self.gaussian:
            return None
        return sum((p.count * p.shift / p.mechanism.parameter for p in self.parts), Fraction(0))


@lru_cache(maxsize=64)  # asked for at every point of a curve
def _sum_of_rho(parts: tuple[Coordinates, ...]) -> Fraction:
    return sum((part.rho for part in parts), Fraction(0))


def common_step(steps: Iterable[Fraction]) -> Fraction:
    """The largest rational of which every step is a whole multiple."""
    steps = list(steps)
    denominator = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * denominator) for step in steps)), denominator)


def whole(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise PrivacyError(
            f"{what} = {short_repr(value)} is not a whole number of at least 1; counts move by "
            "whole numbers."
        )
    return int(value)


def _order(part: Coordinates) -> tuple[str, Fraction, int]:
    return part.mechanism.name, part.mechanism.parameter, part.shift
