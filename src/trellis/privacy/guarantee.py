"""What a release costs: charges under one protection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from trellis.errors import PrivacyError
from trellis.privacy.mechanisms import DiscreteLaplace, Mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class Charge:
    """One partition of the records, measured once with this noise in every cell."""

    label: str
    mechanism: Mechanism


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The exact cost of measuring some partitions of the same records."""

    protection: Protection
    charges: tuple[Charge, ...]

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated DP; pure charges count with epsilon^2 / 2."""
        return sum((self._rho_of(charge) for charge in self.charges), Fraction(0))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Pure DP, or None where some noise is Gaussian and gives none."""
        total = Fraction(0)
        for charge in self.charges:
            if not isinstance(charge.mechanism, DiscreteLaplace):
                return None
            total += charge.mechanism.epsilon(self.protection.l1)
        return total

    def epsilon(self, delta: float | Fraction) -> float:
        """An epsilon such that the release is (epsilon, delta)-DP, rounded up."""
        if not 0 < delta < 1:
            raise PrivacyError(f"delta must lie strictly between 0 and 1; got {float(delta):g}.")
        bound = math.nextafter(zcdp_epsilon(self.rho, float(delta)), math.inf)
        pure = self.pure_epsilon
        return bound if pure is None else min(bound, math.nextafter(float(pure), math.inf))

    def under(self, neighbours: Neighbours) -> Guarantee:
        """The same charges for another relation; `replace` does not give `add_remove`."""
        if self.protection.neighbours is Neighbours.REPLACE and neighbours != Neighbours.REPLACE:
            raise PrivacyError(
                "A guarantee for replaced records says nothing about added or removed ones."
            )
        return replace(self, protection=replace(self.protection, neighbours=neighbours))

    def _rho_of(self, charge: Charge) -> Fraction:
        if isinstance(charge.mechanism, DiscreteLaplace):
            return charge.mechanism.epsilon(self.protection.l1) ** 2 / 2
        return charge.mechanism.rho(self.protection.l2_squared)


def zcdp_epsilon(rho: Fraction | float, delta: float) -> float:
    """The epsilon at `delta` that rho-zCDP implies: rho + 2 sqrt(rho log(1/delta)).

    Reference: Bun and Steinke, TCC 2016, arXiv:1605.02065.
    """
    return float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))


def round_up(value: float, digits: int = 4) -> str:
    """A bound as people read it: never smaller than it is."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    return f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
