"""The accountant: charges in, certified privacy curves out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from trellis.errors import PrivacyError
from trellis.privacy.accounting.composition import Composition, Coordinates, whole
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.accounting.privacy_curve import PrivacyCurve
from trellis.privacy.mechanisms import Mechanism
from trellis.privacy.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Accountant(PrivacyCurve):
    """What measuring some tables of counts reveals about one unit.

    Each charge is a number of tables (partitions of the records) with noise of one law in
    every cell, where one record moves one cell by `shift`. A unit has at most `max_contribution`
    records; `add_remove` moves one cell per table by all of them, `replace` two.

        Accountant("add_remove").add(DiscreteGaussian(5), count=10).epsilon(1e-10)
    """

    neighbours: Neighbours | str
    max_contribution: int = 1
    charges: tuple[Coordinates, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", relation(self.neighbours))
        object.__setattr__(
            self, "max_contribution", whole("max_contribution", self.max_contribution)
        )

    def add(self, mechanism: Mechanism, count: int = 1, shift: int = 1) -> Self:
        """The accountant that includes `count` more tables with this noise."""
        return replace(self, charges=(*self.charges, Coordinates(mechanism, count, shift)))

    @property
    def composition(self) -> Composition:
        """The coordinates that move, and how far, for the worst neighbour."""
        cells = relation(self.neighbours).cells_moved
        return moved(self.charges, cells, self.max_contribution)

    @property
    def cases(self) -> tuple[Composition, ...]:
        return (self.composition,)

    @property
    def certified(self) -> bool:
        return all_certified(self.charges, self.max_contribution)


def relation(neighbours: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(neighbours)
    except ValueError:
        raise PrivacyError(
            f"There is no relation {neighbours!r} between neighbours. Use one of: "
            f"{', '.join(Neighbours)}."
        ) from None


def moved(charges: tuple[Coordinates, ...], cells: int, records: int) -> Composition:
    """`cells` coordinates per table, each moving by all `records` at once."""
    return Composition.of(
        Coordinates(charge.mechanism, charge.count * cells, charge.shift * records)
        for charge in charges
    )


def all_certified(charges: tuple[Coordinates, ...], records: int) -> bool:
    """Whether one cell moving by all records is known to be the worst for every charge."""
    return all(one_cell_is_worst(charge.mechanism, charge.shift, records) for charge in charges)
