"""Whether what an area holds can be shared out below it.

Bounds that are carried up a hierarchy (`model.carried_bounds`) speak of one cell of a query at a
time. That is all there is to know of areas that may hold anything in a box, since sums of boxes are
boxes. But with bounds on sums as well, such as an exact total, unions of cells are bounded too: two
types of facilities in the same blocks cannot hold more people together than live in these blocks.
Here that is decided exactly. An area can hold v if there are whole numbers with

    v = sum of v_c over its children c,    v_c within the ranges of c,

and so on down to the leaves. Children that may hold anything in a box are added up to one, so that
only the others are written out.

Cells that no bounded query tells apart are of one *kind*, and v counts kinds. That is enough: what
is shared out by kind can be shared out by cell, because there is a table of whole numbers >= 0 for
any sums of its rows and columns that agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Ints, Marks
from trellis.model.tables.carried_bounds import Range, Ranges, StatedRange, unbounded
from trellis.model.tables.constraints import ALONE
from trellis.model.tables.queries import Query, is_finer, refinement
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.feasibility.whole_program import Clashing, Program, Units, Whose


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleBelow:
    """What areas of a hierarchy can hold, by level, root first.

    `written_out` marks the areas that are not simply a box, or belong to a group, and all areas
    above them. `asks` marks those with such a child: their own ranges do not tell what they can
    hold. `possible` are the kinds that may count anyone.
    """

    hierarchy: Hierarchy
    kinds: Query
    image: Mapping[str, Ints]
    possible: Ints
    ranges: Sequence[Ranges]
    groups: Sequence[Sequence[StatedRange]]
    written_out: Sequence[Marks]
    asks: Sequence[Marks]

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        schema: Schema,
        queries: Mapping[str, Query],
        ranges: Sequence[Ranges],
        stated: Sequence[Sequence[StatedRange]],
        impossible: Marks,
    ) -> FeasibleBelow:
        """From what is stated of the queries on each level, and the ranges carried up from it."""
        kinds = refinement(schema, list(queries.values()))
        image = {name: np.zeros(kinds.n_cells, dtype=np.int64) for name in queries}
        for name, query in queries.items():
            image[name][kinds.cell_of] = query.cell_of
        groups = [[s for s in level if s.group_of is not None] for level in stated]
        possible = np.unique(kinds.cell_of[~impossible]).astype(np.int64)
        written_out: list[Marks] = []
        asks: list[Marks] = []
        for level in reversed(range(hierarchy.n_levels)):
            flags = np.zeros(hierarchy.size(level), dtype=bool)
            if written_out:
                start = hierarchy.child_start[level][:-1]
                flags = np.logical_or.reduceat(written_out[-1], start)
            asks.append(flags)
            flags = flags | ~_boxes(flags.size, queries, ranges[level], impossible)
            for group in groups[level]:
                assert group.group_of is not None
                flags |= group.group_of != ALONE
            written_out.append(flags)
        return cls(hierarchy, kinds, image, possible, ranges, groups, written_out[::-1], asks[::-1])

    @property
    def is_needed(self) -> bool:
        """Whether ranges leave anything open."""
        return bool(self.asks[0].any())

    def can_hold(self, level: int, area: int, counts: Ints) -> bool:
        """Whether an area that is within its ranges can hold these numbers of each kind."""
        if not self.asks[level][area]:
            return True
        used = np.flatnonzero(counts)
        program = self._below(level, np.array([area]), used, with_groups=False)
        program.add_up_to(counts[used], 1)
        return program.solve() is not None

    def is_possible(self, level: int, area: int) -> bool:
        """Whether there is anything that an area can hold."""
        program = self._below(level, np.array([area]), self.possible, with_groups=False)
        return program.solve() is not None

    def clash(self, level: int, area: int) -> list[Clashing]:
        """The fewest bounds on an area and below it that cannot be kept; none if all can.

        In real numbers: bounds that clash in whole numbers only are not found.
        """
        program = self._below(level, np.array([area]), self.possible, with_groups=False)
        return program.clash()

    def nearest(
        self, level: int, first: int, last: int, wanted: Ints, parent: Ints | None
    ) -> Ints | None:
        """Counts of kinds near to those wanted that siblings can hold, and that add up to `parent`.

        Siblings x kinds, of least absolute difference in sum (or nearly, where that is hard to
        find); None if there are none. Without a parent, which is the root's case, the sum is free.
        """
        used = self.possible if parent is None else np.flatnonzero(parent)
        program = self._below(level, np.arange(first, last), used, with_groups=True)
        if parent is not None:
            program.add_up_to(parent[used], last - first)
        found = program.nearest(wanted[:, used])
        if found is None:
            return None
        out = np.zeros(wanted.shape, dtype=np.int64)
        out[:, used] = found
        return out

    # -- the program ------------------------------------------------------------------------------

    def _below(self, level: int, nodes: Ints, used: Ints, *, with_groups: bool) -> Program:
        """Siblings first, then what is written out below them, level by level."""
        program = Program(used.size)
        column = program.add_columns(nodes.size)
        self._place(program, level, nodes, used, column, with_groups=with_groups)
        while level < self.hierarchy.leaf_level:
            asks = self.asks[level][nodes]
            nodes, column = nodes[asks], column[asks]
            if not nodes.size:
                break
            level += 1
            children, parent = _children(self.hierarchy.child_start[level - 1], nodes)
            alone = self.written_out[level][children]
            n_parents = nodes.size
            sums = [(column, -1.0, np.arange(n_parents))]
            if not alone.all():
                others, of = np.unique(parent[~alone], return_inverse=True)
                rest = program.add_columns(others.size)
                sums.append((rest, 1.0, others))
                for name, found in self.ranges[level].items():
                    here = children[~alone]
                    part = Range(found.lower[here], found.upper[here])
                    whose = Units(level, Whose.OTHER_CHILDREN, nodes[others])
                    self._bound(program, name, part.added_up(of, others.size), rest, used, whose)
            nodes = children[alone]
            column = program.add_columns(nodes.size)
            self._place(program, level, nodes, used, column, with_groups=True)
            sums.append((column, 1.0, parent[alone]))
            program.add_sums(sums, n_parents)
        return program

    def _place(
        self,
        program: Program,
        level: int,
        nodes: Ints,
        used: Ints,
        column: Ints,
        *,
        with_groups: bool,
    ) -> None:
        """Areas that begin at some columns lie within their ranges, and groups within theirs."""
        for name, found in self.ranges[level].items():
            here = Range(found.lower[nodes], found.upper[nodes])
            self._bound(program, name, here, column, used, Units(level, Whose.AREA, nodes))
        for stated in self.groups[level] if with_groups else ():
            assert stated.group_of is not None
            of = stated.group_of[nodes]
            units, unit = np.unique(of[of != ALONE], return_inverse=True)
            if units.size:
                bound = Range(stated.range.lower[units], stated.range.upper[units])
                whose = Units(level, Whose.GROUP, units)
                self._bound(program, stated.query, bound, column[of != ALONE], used, whose, unit)

    def _bound(
        self,
        program: Program,
        query: str,
        ranges: Range,
        column: Ints,
        used: Ints,
        whose: Units,
        unit: Ints | None = None,
    ) -> None:
        """Answers of a query lie within ranges; `unit` adds up what begins at some columns."""
        unit = np.arange(column.size) if unit is None else unit
        n_cells = ranges.lower.shape[1]
        row = unit[:, np.newaxis] * n_cells + self.image[query][used]
        where = column[:, np.newaxis] + np.arange(used.size)
        program.add_rows(row, where, ranges, whose, query)


def _boxes(n_areas: int, queries: Mapping[str, Query], ranges: Ranges, impossible: Marks) -> Marks:
    """Areas of which one query has all bounds, and those of the others follow from it."""
    is_box = np.ones(n_areas, dtype=bool)
    finest = [f for f in ranges if all(is_finer(queries[f], queries[o]) for o in ranges)]
    for name, found in ranges.items():
        if finest:
            fine, own = queries[finest[0]], ranges[finest[0]]
            image = np.zeros(fine.n_cells, dtype=np.int64)
            image[fine.cell_of] = queries[name].cell_of
            sums = Range(own.lower.T, own.upper.T).added_up(image, queries[name].n_cells)
            follows = Range(sums.lower.T, sums.upper.T)
        else:
            follows = unbounded(n_areas, queries[name], impossible)
        is_box &= (follows.lower == found.lower).all(axis=1)
        is_box &= (follows.upper == found.upper).all(axis=1)
    return is_box


def _children(start: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """The children of some nodes, and the position of each one's parent among these."""
    numbers = start[nodes + 1] - start[nodes]
    parent = np.repeat(np.arange(nodes.size), numbers)
    offset = np.arange(parent.size) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return start[nodes][parent] + offset, parent
