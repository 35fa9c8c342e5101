r"""How far one person can move a table of group sizes.

Groups (households, taxis) are units of a public register: which units exist, and in which region
each lies, is public and never changes between neighbours. Who is a member of which unit is
confidential. Sizes run from 0 to a declared cap N; larger units count as N. Per region,

    n_s = number of units of size s,        c_s = n_0 + ... + n_s.

c_N is the number of units in the register. It never moves, so it is published exactly, as public,
and noise is added to c_0 .. c_{N-1} only.

A member leaving a unit of size s takes one from n_s and adds one to n_{s-1}; c_{s-1} rises by one
and no other c moves. A member joining is the reverse. With a bounded quantity of up to z per record
a unit moves from s to s - z: n still changes in two cells, c_{s-z} .. c_{s-1} rise by one each.
Of one person's m records, in one unit or several,

                          add_remove                      replace
    histogram       L1 2 m      L2^2 2 m^2          L1 4 m      L2^2 6 m^2
    cumulative      L1 m z      L2^2 m^2 z          L1 2 m z    L2^2 2 m^2 z

for the tables of one level, all regions together. They are reached when the records pile up on
units of equal size. The 6 is not 4: replacing a record between two units of size s in one region
changes n by (+1, -2, +1), so doubling the change of add_remove understates it. For the cumulative
table doubling is right: what leaves raises c, what joins lowers it, and where they meet they
cancel. Top-coding at N can only make a change vanish.

Every level contains each unit once: with L levels measured, composition adds up L times this.

Where the literature goes wrong. Fioretto, Van Hentenryck and Zhu (Artificial Intelligence 2021,
arXiv:2006.15673; Lemma 6 of the conference version) claim sensitivity 1 for c with sizes from 1 and
groups made of the records themselves. A unit whose only member leaves then vanishes: every c_s
falls by one, and so does the published number of groups. The lemma holds under the conditions
above: a register that is public, and a size 0.

A whole unit. If all k members of one unit are protected together, n moves by at most L1 2 and L2^2
2 whatever k is, and c by at most L1 k and L2^2 k (`whole_unit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trellis.errors import PrivacyError
from trellis.privacy.changes import Change
from trellis.privacy.neighbours import Neighbours


class SizeQuery(StrEnum):
    """Which table of a region is measured."""

    HISTOGRAM = "histogram"
    """n_0 .. n_N: groups of each size."""

    CUMULATIVE = "cumulative"
    """c_0 .. c_{N-1}: groups of at most each size; c_N is public."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """The farthest that the tables of one level can move, all regions together."""

    l1: int
    l2_squared: int


def worst_change(
    query: SizeQuery, neighbours: Neighbours, max_records: int = 1, max_quantity: int = 1
) -> TableChange:
    """Sensitivities of one level for one person with up to `max_records` records.

    Each record adds a whole quantity of 0 to `max_quantity` to the size of one unit.
    """
    m = _at_least_one("max_records", max_records)
    z = _at_least_one("max_quantity", max_quantity)
    replace = neighbours is Neighbours.REPLACE
    if query is SizeQuery.HISTOGRAM:
        return TableChange(4 * m, 6 * m**2) if replace else TableChange(2 * m, 2 * m**2)
    return TableChange(2 * m * z, 2 * m**2 * z) if replace else TableChange(m * z, m**2 * z)


@dataclass(frozen=True, slots=True)
class SizeTable:
    """The tables of group sizes of one level, as a query with a price.

    `max_quantity` is the most that one record adds to the size of its unit.
    """

    query: SizeQuery
    max_quantity: int = 1

    def __post_init__(self) -> None:
        _at_least_one("max_quantity", self.max_quantity)

    def change(self, neighbours: Neighbours, max_contribution: int) -> Change:
        r"""The change vector that has both norms of `worst_change`, and why it is the worst.

        With one record, every change is part of it, or has a 2 of (1, -2, 1) split in two. With m
        records of quantity 1, each side of a change is a partition of at most m, as it is in a
        table of counts; but not if two sides overlap (histogram, replace) or if records move runs
        of several cells: then only the norms are known.
        """
        m, z = _at_least_one("max_records", max_contribution), self.max_quantity
        replace = neighbours is Neighbours.REPLACE
        if self.query is SizeQuery.CUMULATIVE:
            moves = ((m, 2 * z if replace else z),)
            return Change(moves, merged=m if m == 1 or z == 1 else None)
        if replace:
            return Change(((m, 2), (2 * m, 1)), merged=2 if m == 1 else None)
        return Change(((m, 2),), merged=m)


def worst_vectors(query: SizeQuery, neighbours: Neighbours) -> tuple[tuple[int, ...], ...]:
    """Changes of one person with one record of quantity 1, up to signs, order and zeros.

    Every possible change of a level's tables consists of the entries of one of these, in one
    region or spread over two, or is zero. For accountants that need more than norms.
    """
    one = (1, -1) if query is SizeQuery.HISTOGRAM else (1,)
    if neighbours is Neighbours.ADD_REMOVE:
        return (one,)
    if query is SizeQuery.CUMULATIVE:
        return ((1, -1),)
    return ((1, -2, 1), (1, 1, -1, -1))


def whole_unit(query: SizeQuery, max_members: int) -> TableChange:
    """Sensitivities of one level if all members of one unit appear or disappear together."""
    k = _at_least_one("max_members", max_members)
    return TableChange(2, 2) if query is SizeQuery.HISTOGRAM else TableChange(k, k)


def _at_least_one(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PrivacyError(f"{name} must be a whole number of at least 1.")
    return value
