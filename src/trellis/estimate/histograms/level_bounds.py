"""Constraints and exact answers as bounds on every level, handed up to all levels above.

An estimate made from the root down must leave room for the constraints further down: what the
children must hold at least, their parent must hold, and what they can hold at most bounds it.
Before sums are taken, bounds of queries of which one is finer than the other sharpen each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from trellis.errors import Infeasible, StructureError
from trellis.estimate.histograms.bounds import FamilyBound
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.model.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.hierarchy import Hierarchy
from trellis.model.queries import Query, is_finer, parse_query

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Least and greatest answers: nodes of a level (or groups of nodes) x cells of a query."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRange:
    """A range for groups of siblings; `group_of` has one group, or -1, for each node."""

    query: str
    range: Range
    group_of: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class LevelBounds:
    """All bounds of one level."""

    by_query: dict[str, Range]
    grouped: tuple[GroupedRange, ...]

    @property
    def queries(self) -> list[str]:
        return [*self.by_query, *(g.query for g in self.grouped if g.query not in self.by_query)]

    def family(self, first: int, last: int) -> list[FamilyBound]:
        """The bounds of the siblings first <= node < last."""
        out = [
            FamilyBound(name, bound.lower[first:last], bound.upper[first:last])
            for name, bound in self.by_query.items()
        ]
        for grouped in self.grouped:
            groups = grouped.group_of[first:last]
            own, local = np.unique(groups[groups >= 0], return_inverse=True)
            if own.size:
                group_of = np.full(groups.size, -1, dtype=np.int64)
                group_of[groups >= 0] = local
                lower, upper = grouped.range.lower[own], grouped.range.upper[own]
                out.append(FamilyBound(grouped.query, lower, upper, group_of))
        return out


def level_bounds(evidence: HistogramEvidence, constraints: Constraints | None) -> list[LevelBounds]:
    """The bounds of every level, root first."""
    hierarchy, schema = evidence.hierarchy, evidence.schema
    linear = constraints.linear if constraints else ()
    names = [c.query for c in linear]
    names += [name for level in evidence.measured for name, v in level.items() if v == 0]
    queries = {name: parse_query(schema, name) for name in dict.fromkeys(names)}
    out: list[LevelBounds] = []
    inherited: dict[str, Range] = {}
    for level in reversed(range(hierarchy.n_levels)):
        ranges = dict(inherited)
        for name, variance in evidence.measured[level].items():
            if variance == 0:
                z = evidence.read(level, name, 0, hierarchy.sizes[level]).astype(np.float64)
                _tighten(ranges, queries[name].name, Range(z, z))
        grouped = []
        for constraint in linear:
            if hierarchy.index(constraint.level) == level:
                _check(constraint, hierarchy, queries[constraint.query])
                bound = _range(constraint)
                name = queries[constraint.query].name
                if constraint.group_of is None:
                    _tighten(ranges, name, bound)
                else:
                    grouped.append(GroupedRange(name, bound, constraint.group_of))
        by_name = {query.name: query for query in queries.values()}
        _sharpen(ranges, by_name)
        _check_ranges(ranges, hierarchy, level)
        out.append(LevelBounds(ranges, tuple(grouped)))
        if level:
            inherited = _handed_up(hierarchy, level, out[-1])
    return out[::-1]


def _range(constraint: LinearConstraint) -> Range:
    bound = constraint.bound.astype(np.float64)
    binds = constraint.bound != NO_BOUND
    at_least = constraint.sense in (Sense.EQUAL, Sense.AT_LEAST)
    at_most = constraint.sense in (Sense.EQUAL, Sense.AT_MOST)
    lower = np.where(binds, bound, 0.0) if at_least else np.zeros(bound.shape)
    upper = np.where(binds, bound, inf) if at_most else np.full(bound.shape, inf)
    return Range(lower, upper)


def _check(constraint: LinearConstraint, hierarchy: Hierarchy, query: Query) -> None:
    nodes = hierarchy.size(constraint.level)
    if constraint.group_of is None:
        rows = nodes
    else:
        rows = len(constraint.bound)
        level = hierarchy.index(constraint.level)
        member = constraint.group_of >= 0
        parents = hierarchy.parents(level) if level else np.zeros(1, dtype=np.int64)
        if constraint.group_of.shape != (nodes,):
            raise StructureError(f"{constraint.label}: give a group for each of {nodes} areas.")
        of = np.full(rows, -1)
        of[constraint.group_of[member]] = parents[member]
        if (of[constraint.group_of[member]] != parents[member]).any():
            raise StructureError(f"{constraint.label}: a group has areas of different parents.")
    if constraint.bound.shape != (rows, query.n_cells):
        raise StructureError(
            f"{constraint.label}: {query.name!r} on level {constraint.level!r} needs bounds for "
            f"{rows} x {query.n_cells}."
        )


def _check_ranges(ranges: Mapping[str, Range], hierarchy: Hierarchy, level: int) -> None:
    for name, bound in ranges.items():
        if (crossed := bound.lower > bound.upper).any():
            node, cell = np.argwhere(crossed)[0]
            raise Infeasible(
                f"Area {str(hierarchy.codes(level)[node])!r} of level "
                f"{hierarchy.level_names[level]!r}: its constraints and those of the areas below "
                f"it ask for at least {bound.lower[node, cell]:g} and at most "
                f"{bound.upper[node, cell]:g} in cell {cell} of {name!r}."
            )


def _tighten(ranges: dict[str, Range], name: str, new: Range) -> None:
    old = ranges.get(name)
    if old is not None:
        new = Range(np.maximum(old.lower, new.lower), np.minimum(old.upper, new.upper))
    ranges[name] = new


def _sharpen(ranges: dict[str, Range], queries: Mapping[str, Query]) -> None:
    """Bounds of a query from those of a finer one, and back, until nothing changes."""
    pairs = [
        (fine, coarse)
        for fine in ranges
        for coarse in ranges
        if fine != coarse and is_finer(queries[fine], queries[coarse])
    ]
    for _ in range(2 * len(ranges)):
        before = {name: (r.lower.sum(), np.isfinite(r.upper).sum()) for name, r in ranges.items()}
        for fine, coarse in pairs:
            _sharpen_pair(ranges, fine, coarse, queries)
        after = {name: (r.lower.sum(), np.isfinite(r.upper).sum()) for name, r in ranges.items()}
        if before == after:
            break


def _sharpen_pair(
    ranges: dict[str, Range], fine: str, coarse: str, queries: Mapping[str, Query]
) -> None:
    part, whole = ranges[fine], ranges[coarse]
    within = np.zeros(queries[fine].n_cells, dtype=np.int64)
    within[queries[fine].cell_of] = queries[coarse].cell_of
    shape = whole.lower.shape
    lower, upper, open_ = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    np.add.at(lower.T, within, part.lower.T)
    np.add.at(upper.T, within, np.where(np.isfinite(part.upper), part.upper, 0.0).T)
    np.add.at(open_.T, within, np.isinf(part.upper).astype(float).T)
    most = np.where(open_ > 0, inf, upper)
    whole = Range(np.maximum(whole.lower, lower), np.minimum(whole.upper, most))
    ranges[coarse] = whole
    others_lower = lower[:, within] - part.lower
    others_open = open_[:, within] - np.isinf(part.upper)
    own = np.where(np.isfinite(part.upper), part.upper, 0.0)
    others_upper = np.where(others_open > 0, inf, upper[:, within] - own)
    ranges[fine] = Range(
        np.maximum(part.lower, whole.lower[:, within] - others_upper),
        np.minimum(part.upper, whole.upper[:, within] - others_lower),
    )


def _handed_up(hierarchy: Hierarchy, level: int, bounds: LevelBounds) -> dict[str, Range]:
    """The sums of the children's bounds, for their parents."""
    start = hierarchy.child_start[level - 1][:-1]
    out = {
        name: Range(
            np.add.reduceat(r.lower, start, axis=0), np.add.reduceat(r.upper, start, axis=0)
        )
        for name, r in bounds.by_query.items()
    }
    parents = hierarchy.parents(level)
    for grouped in bounds.grouped:
        member = grouped.group_of >= 0
        width = grouped.range.lower.shape[1]
        parent_of = np.zeros(len(grouped.range.lower), dtype=np.int64)
        parent_of[grouped.group_of[member]] = parents[member]
        lower, upper = np.zeros((2, hierarchy.sizes[level - 1], width))
        used = np.unique(grouped.group_of[member])
        np.add.at(lower, parent_of[used], grouped.range.lower[used])
        np.add.at(upper, parent_of[used], grouped.range.upper[used])
        upper[parents[~member]] = inf
        _tighten(out, grouped.query, Range(lower, upper))
    return out
