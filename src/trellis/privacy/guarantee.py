"""What a release costs: charges under one protection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from trellis.errors import PrivacyError
from trellis.privacy.accounting import Composition, Coordinates, PrivacyCurve
from trellis.privacy.accounting.profiles import Query, whole_record
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
    """The exact cost of measuring some tables of the same records.

    Where areas of one level carry different noise, `paths` holds, for every kind of path from the
    root to a leaf, the positions of its charges. A record meets the charges of one path; a replaced
    one those of two, half of each change. Without paths, every record meets all charges.
    """

    protection: Protection
    charges: tuple[Charge, ...]
    paths: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.paths and any(charge.table != PARTITION for charge in self.charges):
            raise PrivacyError("Only counts of records can have noise that depends on the path.")
        if self.paths and set().union(*self.paths) != set(range(len(self.charges))):
            raise PrivacyError("Every charge must lie on a path, and every path have charges.")

    @property
    def _charges_met(self) -> list[list[Charge]]:
        """The charges of each path."""
        if not self.paths:
            return [list(self.charges)]
        return [[self.charges[i] for i in path] for path in self.paths]

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated DP.

        The largest of any path. Half of one path and half of another cost no more than the dearer.
        """
        return max(
            sum((self.rho_of(charge) for charge in path), Fraction(0)) for path in self._charges_met
        )

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Pure DP, or None where some noise is Gaussian and gives none."""
        totals = []
        for path in self._charges_met:
            total = Fraction(0)
            for charge in path:
                if not isinstance(charge.mechanism, DiscreteLaplace):
                    return None
                total += charge.mechanism.epsilon(self.change(charge).l1)
            totals.append(total)
        return max(totals)

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

    def rho_of(self, charge: Charge) -> Fraction:
        """What one charge costs in zero-concentrated DP."""
        return charge.mechanism.rho(self.change(charge).l2_squared)


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
        if self.guarantee.paths:
            return self._path_cases
        moved = [
            Coordinates(charge.mechanism, cells, distance)
            for charge in self.guarantee.charges
            for distance, cells in self.guarantee.change(charge).moves
        ]
        return (Composition.of(moved),)

    @property
    def _path_cases(self) -> tuple[Composition, ...]:
        """The worst path for added or removed records, the worst pair of them for replaced ones."""
        guarantee, protection = self.guarantee, self.guarantee.protection
        profiles = [
            tuple(Query(guarantee.charges[i].label, guarantee.charges[i].mechanism) for i in path)
            for path in guarantee.paths
        ]
        return whole_record(profiles, protection.neighbours, protection.max_contribution).cases

    @property
    def certified(self) -> bool:
        return all(
            self.guarantee.change(charge).is_worst(charge.mechanism)
            for charge in self.guarantee.charges
        )


def round_up(value: float, digits: int = 4) -> str:
    """A bound as people read it, rounded up."""
    scaled = math.ceil(Fraction(value) * 10**digits)
    return f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"
