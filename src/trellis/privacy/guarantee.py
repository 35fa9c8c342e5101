"""What a release costs: charges under one protection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from trellis.errors import PrivacyError
from trellis.privacy.accounting import Composition, Coordinates, PrivacyCurve
from trellis.privacy.changes import PARTITION, Change, Table
from trellis.privacy.mechanisms import DiscreteLaplace, Mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class Charge:
    """One query on the areas of a level, measured once with this noise in every cell."""

    label: str
    mechanism: Mechanism
    table: Table = PARTITION


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The exact cost of measuring some tables of the same records."""

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
            total += charge.mechanism.epsilon(self.change(charge).l1)
        return total

    def change(self, charge: Charge) -> Change:
        """How far one unit can move what this charge is for."""
        protection = self.protection
        return charge.table.change(protection.neighbours, protection.max_contribution)

    @property
    def accountant(self) -> GuaranteeCurve:
        """The exact accountant of these charges, for whole curves and the trade-off function."""
        return GuaranteeCurve(self)

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
        change = self.change(charge)
        if isinstance(charge.mechanism, DiscreteLaplace):
            return charge.mechanism.epsilon(change.l1) ** 2 / 2
        return charge.mechanism.rho(change.l2_squared)


@dataclass(frozen=True, slots=True)
class GuaranteeCurve(PrivacyCurve):
    """What all charges of a guarantee reveal together, at any epsilon, delta or alpha.

    Each table moves as far as it can. Where that is not certified to be the worst, the bounds are
    those of zero-concentrated DP and of pure DP, for which the norms suffice.
    """

    guarantee: Guarantee

    @property
    def neighbours(self) -> Neighbours:
        return self.guarantee.protection.neighbours

    @property
    def cases(self) -> tuple[Composition, ...]:
        moved = [
            Coordinates(charge.mechanism, cells, distance)
            for charge in self.guarantee.charges
            for distance, cells in self.guarantee.change(charge).moves
        ]
        return (Composition.of(moved),)

    @property
    def certified(self) -> bool:
        return all(
            self.guarantee.change(charge).is_worst(charge.mechanism)
            for charge in self.guarantee.charges
        )


def round_up(value: float, digits: int = 4) -> str:
    """A bound as people read it: never smaller than it is."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    return f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
