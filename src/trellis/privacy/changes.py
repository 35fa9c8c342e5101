"""How far one unit can move the answers to one query: the price list of the accountants.

A `Table` says which query is asked; with the neighbouring relation and the bound on records it
gives the `Change`. It is kept as what it is, not as numbers, so that a ledger can count a charge
for another relation or unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trellis.errors import PrivacyError
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.mechanisms import Mechanism
from trellis.privacy.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Change:
    """The farthest that a table moves between neighbours, all its areas together.

    `moves` holds pairs (distance, number of cells that move that far). No other change has a larger
    L1 or L2 norm. `merged` says why no other change is worse at any (epsilon, delta) either: each
    is this one with some move of at most `merged` split into parts, or smaller moves, or fewer.
    None: that is not known, and only the norms count.
    """

    moves: tuple[tuple[int, int], ...]
    merged: int | None

    @property
    def l1(self) -> int:
        return sum(distance * cells for distance, cells in self.moves)

    @property
    def l2_squared(self) -> int:
        return sum(distance**2 * cells for distance, cells in self.moves)

    def is_worst(self, noise: Mechanism) -> bool:
        """Whether `moves` is certified to be the worst change under this noise."""
        return self.merged is not None and one_cell_is_worst(noise, 1, self.merged)


class Table(Protocol):
    """A query, as far as its price is concerned."""

    def change(self, neighbours: Neighbours, max_contribution: int) -> Change: ...


@dataclass(frozen=True, slots=True)
class Partition:
    """A table in which every record falls into exactly one cell, and adds 0 .. `bound` to it.

    A count has the bound 1. A record of a bounded sum counts as that many records of a count.
    """

    bound: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.bound, bool) or not isinstance(self.bound, int) or self.bound < 1:
            raise PrivacyError("bound must be a whole number of at least 1.")

    def change(self, neighbours: Neighbours, max_contribution: int) -> Change:
        """All records of a unit leave one cell, or move from one cell to another."""
        most = self.bound * max_contribution
        return Change(((most, neighbours.cells_moved),), merged=most)


PARTITION = Partition()
