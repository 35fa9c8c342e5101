"""Tiny societies of persons in households, and pairs of them that differ in one unit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

CELLS = 3
PERSON, HOUSEHOLD = "person", "household"

Records = dict[str, tuple[int, ...]]
"""By unit: the cells of its records."""


@dataclass(frozen=True)
class Facts:
    """How many records a unit has at most, and how units are tied; true, so it may be declared.

    With one membership, a household is made up of its persons, who come and go with it. With more
    they stay when a household goes, and their records become others.
    """

    records: dict[str, int]
    members: int
    memberships: int

    def declared(self, unit: str) -> dict[str, dict[str, int]]:
        if unit == PERSON:
            return {"part_of": {HOUSEHOLD: self.memberships}}
        word = "unit_bounds" if self.memberships == 1 else "part_of"
        return {word: {PERSON: self.members}}


@dataclass(frozen=True)
class Society:
    """The records of all units, by the kind of unit."""

    records: dict[str, Records]

    def table(self, unit: str, most: int | None) -> Counter[int]:
        """Counts by cell; of each unit only `most` records, where a release caps them."""
        return Counter(cell for cells in self.records[unit].values() for cell in cells[:most])


def neighbours(
    chance: Random, facts: Facts, unit: str, *, replaced: bool
) -> tuple[Society, Society]:
    """One person, or one household, is there in the second: with it, all that is tied to it.

    `replaced`: another one is there in the first.
    """
    draw = _Drawing(chance, facts)
    if unit == PERSON:
        return draw.person(replaced)
    return draw.household(replaced)


@dataclass(frozen=True)
class _Drawing:
    chance: Random
    facts: Facts

    def person(self, replaced: bool) -> tuple[Society, Society]:
        """The records of the households that a person enters, or leaves, become others."""
        entered = [f"h{i}" for i in range(self.facts.memberships)]
        left = [f"g{i}" for i in range(self.facts.memberships)] if replaced else []
        before = {PERSON: self._own(PERSON) if replaced else {},
                  HOUSEHOLD: self._several(HOUSEHOLD, entered + left)}  # fmt: skip
        after = {PERSON: self._own(PERSON), HOUSEHOLD: self._several(HOUSEHOLD, entered + left)}
        return Society(before), Society(after)

    def household(self, replaced: bool) -> tuple[Society, Society]:
        """Its persons come and go with it, or stay with other records."""
        inside = [f"p{i}" for i in range(self.facts.members)]
        stay = replaced or self.facts.memberships > 1
        gone = [f"q{i}" for i in range(self.facts.members)]
        others = inside + gone if replaced and self.facts.memberships > 1 else inside
        before = {PERSON: self._several(PERSON, others) if stay else {},
                  HOUSEHOLD: self._own(HOUSEHOLD) if replaced else {}}  # fmt: skip
        after = {PERSON: self._several(PERSON, others), HOUSEHOLD: self._own(HOUSEHOLD)}
        return Society(before), Society(after)

    def _own(self, unit: str) -> Records:
        return self._several(unit, ["me"])

    def _several(self, unit: str, names: list[str]) -> Records:
        """Half of the time all in one cell, which moves a table farthest."""
        together = self.chance.randrange(CELLS) if self.chance.random() < 0.5 else None
        return {name: self._cells(unit, together) for name in names}

    def _cells(self, unit: str, together: int | None) -> tuple[int, ...]:
        most = self.facts.records[unit]
        size = most if self.chance.random() < 0.8 else self.chance.randint(0, most)
        if together is not None:
            return (together,) * size
        return tuple(self.chance.randrange(CELLS) for _ in range(size))
