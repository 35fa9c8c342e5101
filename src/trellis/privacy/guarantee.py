"""What a release costs: charges under one protection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from trellis.errors import PrivacyError
from trellis.privacy.accounting import Accountant
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

    @property
    def accountant(self) -> Accountant:
        """The exact accountant of these charges, for whole curves and the trade-off function."""
        protection = self.protection
        accountant = Accountant(protection.neighbours, protection.max_contribution)
        for charge in self.charges:
            accountant = accountant.add(charge.mechanism)
        return accountant

    def epsilon(self, delta: float | Fraction) -> float:
        """An epsilon such that the release is (epsilon, delta)-DP: exact, rounded up."""
        return self.accountant.epsilon(delta)

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


def round_up(value: float, digits: int = 4) -> str:
    """A bound as people read it: never smaller than it is."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    return f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
