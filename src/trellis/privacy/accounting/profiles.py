"""Root-to-leaf paths that carry different noise, and guarantees for smaller changes.

After areas were bypassed, areas of one level carry different noise. What counts for a record is the
path from the root to its leaf: one cell moves in every table on it. A record that moves from leaf a
to leaf b moves one cell on every node of path a and one on every node of path b (the same node
twice where they coincide), so the composition is profile(a) + profile(b). A mixed pair can be worse
than both pure ones, and which is worst depends on epsilon: the pointwise maximum is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from trellis.errors import PrivacyError
from trellis.privacy.accounting.accountant import all_certified, moved, relation
from trellis.privacy.accounting.composition import Composition, Coordinates, whole
from trellis.privacy.accounting.privacy_curve import WorstCase
from trellis.privacy.mechanisms import Mechanism
from trellis.privacy.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Query:
    """`count` tables measured in every area of a level on the path, all with the same noise.

    `separates` names the attributes of which the tables' cells tell some values apart.
    """

    level: str
    mechanism: Mechanism
    count: int = 1
    separates: frozenset[str] = frozenset()

    @property
    def charge(self) -> Coordinates:
        return Coordinates(self.mechanism, self.count)


Profile = tuple[Query, ...]
"""What is measured on one path from the root to a leaf."""


def whole_record(
    profiles: Iterable[Profile], neighbours: Neighbours | str, max_contribution: int = 1
) -> WorstCase:
    """Any change of all records of a unit: the worst path, or the worst pair of paths."""
    if relation(neighbours) is Neighbours.ADD_REMOVE:
        return _worst(_distinct(profiles), max_contribution)
    return _worst(_pairs(profiles), max_contribution)


def location_within(
    profiles: Iterable[Profile], levels: Sequence[str], area: str, max_contribution: int = 1
) -> WorstCase:
    """A change of location only, that stays inside an area of level `area`.

    `levels` runs from the root down. All pairs of paths are considered, also those that no two
    leaves of one area have: the answer may be larger than needed, never smaller.
    """
    if area not in levels:
        raise PrivacyError(f"There is no level {area!r}. Use one of: {', '.join(levels)}.")
    below = set(levels[levels.index(area) + 1 :])
    parts = (tuple(query for query in profile if query.level in below) for profile in profiles)
    return _worst(_pairs(parts), max_contribution)


def one_attribute(
    profiles: Iterable[Profile], attribute: str, max_contribution: int = 1
) -> WorstCase:
    """A change in one attribute only: two cells of every table that separates its values."""
    parts = (
        tuple(query for query in profile if attribute in query.separates) for profile in profiles
    )
    return _worst((part + part for part in _distinct(parts)), max_contribution)


def _distinct(profiles: Iterable[Profile]) -> list[Profile]:
    """Paths that differ in the noise they carry, whatever the order and the level."""
    by_noise = {
        Composition.of(q.charge for q in profile): profile for profile in profiles if profile
    }
    return list(by_noise.values())


def _pairs(profiles: Iterable[Profile]) -> Iterable[Profile]:
    return (a + b for a, b in combinations_with_replacement(_distinct(profiles), 2))


def _worst(changes: Iterable[Profile], max_contribution: int) -> WorstCase:
    charges = [tuple(query.charge for query in change) for change in changes if change]
    if not charges:
        raise PrivacyError(
            "No table changes, so there is nothing to account for: it costs nothing."
        )
    records = whole("max_contribution", max_contribution)
    return WorstCase(
        tuple({moved(charge, 1, records) for charge in charges}),
        all(all_certified(charge, records) for charge in charges),
    )
