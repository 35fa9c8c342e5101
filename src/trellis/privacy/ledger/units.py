r"""What a change of one unit does to the records of another.

Charges for persons and charges for households of the same data set add up for one unit only. A
charge for another unit counts with the farthest that a change of one of *this* unit moves its
tables, and that takes a declared bound. Say that one of the other units has at most m records.

**made of.** One household is made up of at most k persons, each of whom is in no other household. A
household that is added or removed brings or takes all records of its persons: at most k m come, or
at most k m go. One that is replaced does both.

    of add_remove:  change(add_remove, k m)         of replace:  change(replace, k m)

**part of.** One person is part of at most j households. The households do not come and go with the
person. Their records become others: a household of four becomes one of three, so a cell loses a
record and another gains it, under `add_remove` of persons too. At most j m records go, and at most
j m come. (Fewer come or go where a household begins or ends with the person.) A person who is
replaced leaves j households and enters j others, so up to 2 j change.

    of add_remove:  change(replace, j m)            of replace:  change(replace, 2 j m)

In all four cases `Table.change(replace, n)` bounds the removal of up to n records together with the
addition of up to n, whoever owns them:

- partition: what goes is a vector of L1 norm at most n, and so is what comes; their squared L2
  norms are at most n^2 each, and where they meet they cancel;
- flows: the same for pairs, and the grand total moves by n at most. Of n = c trips records of c
  units whose trips differ, each side moves a cell by c at most;
- group sizes: `group_size_changes` counts m records of any owners, in one unit or several.

It never shrinks as n grows, so counting with a larger bound than needed is safe.

A charge for `replace` may publish totals exactly. Then it tells apart, with certainty, two data
sets in which their numbers differ. It never counts for `add_remove`, and counted for another unit
it protects only changes that keep those numbers.

A bound of 1 can be meant either way, and a unit that is in several others is not taken away with
one of them. Both are read as "part of", which costs more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Integral

from trellis.errors import PrivacyError
from trellis.privacy.guarantee import Guarantee
from trellis.privacy.neighbours import Neighbours


class Tie(StrEnum):
    """How one unit is bound to units of another kind."""

    MADE_OF = "made_of"
    PART_OF = "part_of"

    @property
    def in_words(self) -> str:
        return "made up of" if self is Tie.MADE_OF else "part of"


@dataclass(frozen=True, slots=True)
class UnitBound:
    """One `unit` is made up of, or part of, at most `most` units `other`."""

    unit: str
    other: str
    tie: Tie
    most: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.most, Integral) and not isinstance(self.most, bool)
        if not is_whole or self.most < 1 or self.unit == self.other:
            raise PrivacyError(
                f"That {self.in_words} makes no sense: name another unit, and a whole number of at "
                "least 1."
            )

    @property
    def in_words(self) -> str:
        return f"one {self.unit} is {self.tie.in_words} at most {self.most} {self.other}(s)"


@dataclass(frozen=True, slots=True)
class Conversion:
    """How charges for the unit `bound.other` count for `bound.unit`."""

    bound: UnitBound
    replaces: bool
    """Whether the other units stay, with other records."""

    def records(self, neighbours: Neighbours, max_contribution: int) -> int:
        """How many records of the other kind a change of one unit touches, on each side."""
        both_ends = self.replaces and neighbours is Neighbours.REPLACE
        return (2 if both_ends else 1) * self.bound.most * max_contribution

    def moves(self, neighbours: Neighbours) -> Neighbours:
        """The change that prices it, for this relation between units."""
        return Neighbours.REPLACE if self.replaces else neighbours


def conversion(bounds: Collection[UnitBound], unit: str, other: str) -> Conversion | None:
    """How charges for `other` count for `unit`, by the largest bounds declared, or None."""
    there = [b for b in bounds if (b.unit, b.other) == (unit, other)]
    if not there:
        return None
    back = [b for b in bounds if (b.unit, b.other) == (other, unit)]
    largest = max(there, key=lambda b: b.most)
    is_part = any(b.tie is Tie.PART_OF for b in there)
    is_shared = any(b.most > 1 for b in back)
    return Conversion(largest, is_part or is_shared or largest.most == 1)


def priced(guarantee: Guarantee, unit: str, moves: Neighbours, records: int) -> Guarantee:
    """The same charges at the price of a change that moves this many records."""
    protection = replace(
        guarantee.protection, unit=unit, neighbours=moves, max_contribution=records
    )
    return replace(guarantee, protection=protection)
