"""Bounds on answers, carried up a hierarchy and between queries.

Answers add up the hierarchy, so bounds do: the least answers of the children sum to a least answer
of the parent, and the greatest to its greatest. Where a bound is stated for a group of siblings,
the group takes the place of its members. On each level the bounds of a query and of a coarser one
sharpen each other,

    sum of lower(fine) <= coarse <= sum of upper(fine),
    lower(coarse) - upper(the other fine cells) <= fine <= upper(coarse) - lower(the other ones),

until nothing changes. What is carried follows from what is stated; on one level alone it need not
be all that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trellis.model.tables.constraints import ALONE, NO_BOUND, LinearConstraint, Sense
from trellis.model.tables.queries import Query, is_finer
from trellis.model.trees.hierarchy import Hierarchy

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Least and greatest answers of a query: areas (or groups of siblings) x its cells."""

    lower: Floats
    upper: Floats

    def within(self, other: Range) -> Range:
        """What is in both."""
        return Range(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def added_up(self, into: NDArray[np.int64], n: int) -> Range:
        """The sums over the areas that go into each of n others."""
        is_open = np.isinf(self.upper)
        most = sums(np.where(is_open, 0.0, self.upper), into, n)
        n_open = sums(is_open.astype(np.float64), into, n)
        return Range(sums(self.lower, into, n), np.where(n_open > 0, np.inf, most))

    @property
    def T(self) -> Range:  # noqa: N802 - as arrays have it
        """Cells x areas, and back."""
        return Range(self.lower.T, self.upper.T)

    def rows(self, chosen: NDArray | slice) -> Range:
        """Of some areas; one range for all stays as it is."""
        return self if self.lower.ndim == 0 else Range(self.lower[chosen], self.upper[chosen])

    @property
    def is_crossed(self) -> bool:
        """Whether somewhere there is nothing between its ends."""
        return bool((self.lower > self.upper).any())

    def same_as(self, other: Range) -> bool:
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)


@dataclass(frozen=True, slots=True, eq=False)
class StatedRange:
    """A range of one level as it was stated; `group_of` has a group, or ALONE, for each area."""

    query: str
    range: Range
    group_of: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, constraint: LinearConstraint, query: Query) -> StatedRange:
        binds = constraint.bound != NO_BOUND
        bound = constraint.bound.astype(np.float64)
        lower, upper = np.where(binds, bound, 0.0), np.where(binds, bound, np.inf)
        if constraint.sense is Sense.AT_MOST:
            lower = np.zeros(bound.shape)
        if constraint.sense is Sense.AT_LEAST:
            upper = np.full(bound.shape, np.inf)
        return cls(query.name, Range(lower, upper), constraint.group_of)


Ranges = dict[str, Range]


def carried_bounds(
    hierarchy: Hierarchy,
    queries: Mapping[str, Query],
    stated: Sequence[Sequence[StatedRange]],
    impossible: NDArray[np.bool_],
    rounds: int | None = None,
) -> list[Ranges]:
    """The range of each query, by level, root first, from what is stated there and below.

    `stated` has a list for each level, `queries` all queries by name. A level has no range of a
    query of which nothing is stated on it or below. Crossed ranges are left for the caller to see.
    Queries of a level sharpen each other in at most `rounds` rounds, by default two for each.
    """
    levels: list[Ranges] = []
    for level in reversed(range(hierarchy.n_levels)):
        n_areas = hierarchy.size(level)
        ranges: Ranges = {}
        if levels:
            for name, below in levels[-1].items():
                sums = (hierarchy.sum_children(level, side) for side in (below.lower, below.upper))
                _tighten(ranges, name, Range(*sums))
            for group in stated[level + 1]:
                if group.group_of is not None:
                    free = unbounded(hierarchy.size(level + 1), queries[group.query], impossible)
                    below = levels[-1].get(group.query, free)
                    _tighten(ranges, group.query, _through_groups(group, below, hierarchy, level))
        for single in stated[level]:
            if single.group_of is None:
                _tighten(ranges, single.query, single.range)
        for name, found in ranges.items():
            ranges[name] = found.within(unbounded(n_areas, queries[name], impossible))
        sharpen(ranges, queries, rounds or 2 * len(ranges))
        levels.append(ranges)
    return levels[::-1]


def unbounded(n_areas: int, query: Query, impossible: NDArray[np.bool_]) -> Range:
    """No bound, except where all cells of an answer are impossible."""
    possible = np.zeros(query.n_cells, dtype=bool)
    possible[query.cell_of[~impossible]] = True
    upper = np.tile(np.where(possible, np.inf, 0.0), (n_areas, 1))
    return Range(np.zeros(upper.shape), upper)


def _tighten(ranges: Ranges, name: str, new: Range) -> None:
    ranges[name] = new.within(ranges[name]) if name in ranges else new


def _through_groups(stated: StatedRange, below: Range, tree: Hierarchy, level: int) -> Range:
    """For the parents, with groups and areas outside of them in place of single children."""
    group_of = stated.group_of
    assert group_of is not None
    member, parents = group_of != ALONE, tree.parents(level + 1)
    n_groups = len(stated.range.lower)
    of_members = Range(below.lower[member], below.upper[member])
    groups = of_members.added_up(group_of[member], n_groups).within(stated.range)
    used = np.unique(group_of[member])
    parent_of = np.zeros(n_groups, dtype=np.int64)
    parent_of[group_of[member]] = parents[member]
    every = Range(
        np.concatenate([groups.lower[used], below.lower[~member]]),
        np.concatenate([groups.upper[used], below.upper[~member]]),
    )
    return every.added_up(np.concatenate([parent_of[used], parents[~member]]), tree.size(level))


def sharpen(ranges: Ranges, queries: Mapping[str, Query], rounds: int) -> None:
    """Until nothing changes, or something crosses: crossed ranges would sharpen without end."""
    pairs = [
        (fine, coarse)
        for fine in ranges
        for coarse in ranges
        if fine != coarse and is_finer(queries[fine], queries[coarse])
    ]
    for _ in range(rounds):
        before = dict(ranges)
        for fine, coarse in pairs:
            _sharpen_pair(ranges, queries[fine], queries[coarse])
            if ranges[fine].is_crossed or ranges[coarse].is_crossed:
                return
        if all(before[name].same_as(found) for name, found in ranges.items()):
            break


def _sharpen_pair(ranges: Ranges, fine: Query, coarse: Query) -> None:
    part, image = ranges[fine.name], coarser_cells(fine, coarse)
    whole = ranges[coarse.name].within(part.T.added_up(image, coarse.n_cells).T)
    ranges[coarse.name] = whole
    ranges[fine.name] = part.within(part_range(whole.T, part.T, image).T)


def coarser_cells(fine: Query, coarse: Query) -> NDArray[np.int64]:
    """For each cell of a query, the cell of a coarser one that it lies in."""
    image = np.zeros(fine.n_cells, dtype=np.int64)
    image[fine.cell_of] = coarse.cell_of
    return image


def part_range(whole: Range, part: Range, into: NDArray[np.int64]) -> Range:
    """What each part may be, given the wholes and the other parts that go into the same one."""
    # Infinite less infinite is nothing, so that open parts are counted and the rest is summed.
    n = len(whole.lower)
    is_open = np.isinf(part.upper)
    closed = np.where(is_open, 0.0, part.upper)
    others_least = sums(part.lower, into, n)[into] - part.lower
    others_open = sums(is_open.astype(np.float64), into, n)[into] - is_open > 0
    others_most = np.where(others_open, np.inf, sums(closed, into, n)[into] - closed)
    return Range(whole.lower[into] - others_most, whole.upper[into] - others_least)


def sums(values: Floats, into: NDArray[np.integer], n: int) -> Floats:
    """The rows that go into each of n others, added up; finite numbers only."""
    if n == 1:
        return values.sum(axis=0, keepdims=True)
    place = np.arange(into.size)
    return csr_array((np.ones(into.size), (into, place)), (n, into.size)) @ values
