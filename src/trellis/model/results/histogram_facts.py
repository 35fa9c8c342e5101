"""What facts about the records allow the answers of a histogram's queries to be.

Facts are exact totals, and the bounds and structural zeros that the records are known to keep;
bounds on the output alone are not facts. Stated ranges are carried up the tree and between the
queries of a level (`carried_bounds`). Then they are handed down: with the range of an area and
those of its other children,

    least(area) - most(the others) <= child <= most(area) - least(the others),

and the same for groups of siblings and their members; on each level the queries sharpen each other
again. An answer to any query C is at most what the coarser stated queries allow, at most (least)
the sum of what finer ones allow (ask for), and 0 where no cell of it is possible: a cell is not if
a structural zero names it, or if an answer that holds it can only be 0. Finally, what the other
answers within a coarser one leave to it is taken off in the same way as above, once.

All of this follows from the facts. It need not be all that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.model.tables.carried_bounds import (
    Range,
    Ranges,
    StatedRange,
    carried_bounds,
    coarser_cells,
    part_range,
    sharpen,
    sums,
    unbounded,
)
from trellis.model.tables.constraints import ALONE, Constraints
from trellis.model.tables.queries import Query, is_finer, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

MOST_ROUNDS = 1000
"""Facts that true counts keep come to rest long before."""

CELLS_AT_ONCE = 1 << 20
"""Answers of the widest stated query, or cells of patterns of zeros, that are held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class HistogramFacts:
    """Facts as they are stated, by level, root first, and carried up the tree."""

    hierarchy: Hierarchy
    queries: Mapping[str, Query]
    stated: Sequence[Sequence[StatedRange]]
    carried: Sequence[Ranges]
    impossible: NDArray[np.bool_]
    _families: dict[int, tuple[tuple[int, int], Ranges]] = field(default_factory=dict)
    """By level, the last run of families that was asked for: a large one is found once."""

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        schema: Schema,
        exact: Sequence[Mapping[str, NDArray[np.int64]]],
        bounds: Constraints,
    ) -> Self:
        """From exact answers, by level and query, and constraints that the records keep."""
        names = [c.query for c in bounds.linear] + [name for level in exact for name in level]
        parsed = {name: parse_query(schema, name) for name in names}
        stated = [
            [StatedRange.of(c, parsed[c.query]) for c in bounds.on(name)]
            for name in hierarchy.level_names
        ]
        for level, answers in enumerate(exact):
            for name, values in answers.items():
                answer = values.astype(np.float64)
                stated[level].append(StatedRange(parsed[name].name, Range(answer, answer)))
        queries = {query.name: query for query in parsed.values()}
        carried = carried_bounds(hierarchy, queries, stated, bounds.impossible, MOST_ROUNDS)
        return cls(hierarchy, queries, stated, carried, bounds.impossible)

    def stated_answers(self, level: int, first: int, last: int) -> Ranges:
        """The range of every stated query for the areas first <= area < last of a level."""
        if level == 0:
            return dict(self.carried[0])
        start = self.hierarchy.child_start[level - 1]
        above = int(np.searchsorted(start, first, "right")) - 1
        after = int(np.searchsorted(start, last, "left"))
        if self._families.get(level, (None,))[0] != (above, after):
            self._families[level] = (above, after), self._children(level, above, after)
        begin = int(start[above])
        chosen = slice(first - begin, last - begin)
        return {name: r.rows(chosen) for name, r in self._families[level][1].items()}

    def _children(self, level: int, above: int, after: int) -> Ranges:
        """The same for all children of the areas above <= area < after of the level above."""
        start = self.hierarchy.child_start[level - 1]
        begin, end = int(start[above]), int(start[after])
        parent = np.repeat(np.arange(after - above), np.diff(start[above : after + 1]))
        ranges = {}
        for name, whole in self.stated_answers(level - 1, above, after).items():
            known = self.carried[level].get(name)
            if known is None:
                own = unbounded(end - begin, self.queries[name], self.impossible)
            else:
                own = known.rows(slice(begin, end))
            found = own.within(part_range(whole, own, parent))
            for group in self.stated[level]:
                if group.query == name and group.group_of is not None:
                    members = group.group_of[begin:end]
                    found = found.within(_in_groups(whole, own, parent, group.range, members))
            ranges[name] = found
        sharpen(ranges, self.queries, MOST_ROUNDS)
        return ranges

    def allowed(self, level: int, query: Query, first: int, last: int) -> Range:
        """What the answers to any query may be: areas x its cells."""
        widest = max((q.n_cells for q in self.queries.values()), default=1)
        step = max(1, CELLS_AT_ONCE // widest)
        runs = [(begin, min(begin + step, last)) for begin in range(first, last, step)]
        parts = [self._allowed(level, query, *run) for run in runs]
        if len(parts) == 1:
            return parts[0]
        return Range(
            np.concatenate([part.lower for part in parts]),
            np.concatenate([part.upper for part in parts]),
        )

    def _allowed(self, level: int, query: Query, first: int, last: int) -> Range:
        known = self.stated_answers(level, first, last)
        coarser = {n for n in known if is_finer(query, self.queries[n])}
        finer = {n for n in known if is_finer(self.queries[n], query)}
        found = unbounded(last - first, query, self.impossible)
        crossing = [n for n in known if n not in coarser]
        if crossing and (len(crossing) > 1 or crossing[0] not in finer):
            most = np.where(self._possible(query, known), np.inf, 0.0)
            found = found.within(Range(np.zeros_like(most), most))
        for name in finer:
            image = coarser_cells(self.queries[name], query)
            found = found.within(known[name].T.added_up(image, query.n_cells).T)
        images = {name: coarser_cells(query, self.queries[name]) for name in coarser}
        for name, image in images.items():
            most = known[name].upper[:, image]
            found = found.within(Range(np.zeros_like(most), most))
        left = [_left_over(known[name], found, image) for name, image in images.items()]
        for range_ in left:
            found = found.within(range_)
        return found

    def _possible(self, query: Query, known: Ranges) -> NDArray[np.bool_]:
        """Areas x cells of a query: whether some cell of the schema in it may hold anyone."""
        zeros = np.concatenate([known[name].upper <= 0 for name in known], axis=1)
        patterns, pattern_of = np.unique(np.packbits(zeros, axis=1), axis=0, return_inverse=True)
        zeros = np.unpackbits(patterns, axis=1, count=zeros.shape[1]).astype(bool)
        widths = np.cumsum([0, *(self.queries[name].n_cells for name in known)])
        out = np.empty((len(patterns), query.n_cells), dtype=bool)
        step = max(1, CELLS_AT_ONCE // self.impossible.size)
        for first in range(0, len(patterns), step):
            some = zeros[first : first + step]
            possible = np.repeat(~self.impossible[np.newaxis], len(some), axis=0)
            for begin, name in zip(widths, known, strict=False):
                possible &= ~some[:, begin + self.queries[name].cell_of]
            number = sums(possible.T.astype(np.float64), query.cell_of, query.n_cells)
            out[first : first + step] = number.T > 0
        return out[pattern_of.reshape(-1)]


def _left_over(whole: Range, part: Range, image: NDArray[np.int64]) -> Range:
    """What the other answers within a coarser one leave; nothing new if it asks for nothing."""
    if not whole.lower.any() and not part.lower.any():
        return part
    return part_range(whole.T, part.T, image).T


def _in_groups(
    whole: Range, own: Range, parent: NDArray[np.int64], stated: Range, members: NDArray[np.int64]
) -> Range:
    """What siblings may hold of what their groups may; areas alone are groups of one."""
    n_groups = len(stated.lower)
    key = np.where(members == ALONE, n_groups + np.arange(members.size), members)
    used, unit_of = np.unique(key, return_inverse=True)
    units, grouped = own.added_up(unit_of, used.size), used < n_groups
    units.lower[grouped] = np.maximum(units.lower[grouped], stated.lower[used[grouped]])
    units.upper[grouped] = np.minimum(units.upper[grouped], stated.upper[used[grouped]])
    parent_of = np.zeros(used.size, dtype=np.int64)
    parent_of[unit_of] = parent
    units = units.within(part_range(whole, units, parent_of))
    return part_range(units, own, unit_of)
