"""How far one unit can move the tables of a release of flows.

One unit has up to m trips. Every level of the tree is a partition of all trips, so the trips of a
unit leave one cell, or move from one cell to another (k = 1 for `add_remove`, 2 for `replace`):

    pairs             k cells by m        L1 k m      squared L2 k m^2
    distinct_pairs    k m cells by 1      L1 k m      squared L2 k m
    grand_total       1 cell by m         L1 m        squared L2 m^2

`distinct_pairs` is for levels on which the trips of a unit are known to lie in different cells.
That trips differ in their pairs of leaves makes them distinct there, and below; not above: m
different pairs of towns can be one pair of regions, which then moves by m. (The literature uses the
smaller value on all levels.)

The grand total moves by m under `replace` too, if a unit has at most m trips: from m of them to
none. If every unit has exactly m trips it does not move, and is published exactly.

A release that is counted for a larger unit (a household of u people with m distinct trips each)
moves k m cells by u: trips of different people may coincide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trellis.errors import PrivacyError
from trellis.privacy.changes import Change
from trellis.privacy.neighbours import Neighbours


class FlowQuery(StrEnum):
    """Which table of a level is measured."""

    GRAND_TOTAL = "grand_total"
    """All trips: the root."""

    PAIRS = "pairs"
    """Trips by pair of areas."""

    DISTINCT_PAIRS = "distinct_pairs"
    """The same, on a level where the trips of a unit lie in different cells."""


@dataclass(frozen=True, slots=True)
class FlowTable:
    """The table of one level, as a query with a price.

    `trips` is the most that one unit has, as the release was planned.
    """

    query: FlowQuery
    trips: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.trips, bool) or not isinstance(self.trips, int) or self.trips < 1:
            raise PrivacyError("trips must be a whole number of at least 1.")

    def change(self, neighbours: Neighbours, max_contribution: int) -> Change:
        """The worst change; every other is a part of it, or has its moves split."""
        if self.query is FlowQuery.GRAND_TOTAL:
            return Change(((max_contribution, 1),), merged=max_contribution)
        sides = neighbours.cells_moved
        if self.query is FlowQuery.PAIRS:
            return Change(((max_contribution, sides),), merged=max_contribution)
        units = -(-max_contribution // self.trips)
        return Change(((units, self.trips * sides),), merged=units)
