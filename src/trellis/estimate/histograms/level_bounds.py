"""Constraints and exact answers as bounds on every level, carried to all levels above.

An estimate made from the root down must leave room for the constraints further down: what the
children must hold at least, their parent must hold, and what they can hold at most bounds it. What
such bounds on single cells do not tell, `numerics.feasibility.feasible_below` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trellis.errors import Infeasible, StructureError
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.model.tables.carried_bounds import Range, StatedRange, carried_bounds
from trellis.model.tables.constraints import Constraints, LinearConstraint
from trellis.model.tables.queries import Query, parse_query
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.feasibility.feasible_below import FeasibleBelow


@dataclass(frozen=True, slots=True, eq=False)
class LevelBounds:
    """All bounds of one level."""

    by_query: dict[str, Range]
    grouped: tuple[StatedRange, ...]

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
            assert grouped.group_of is not None
            groups = grouped.group_of[first:last]
            own, local = np.unique(groups[groups >= 0], return_inverse=True)
            if own.size:
                group_of = np.full(groups.size, -1, dtype=np.int64)
                group_of[groups >= 0] = local
                lower, upper = grouped.range.lower[own], grouped.range.upper[own]
                out.append(FamilyBound(grouped.query, lower, upper, group_of))
        return out


def level_bounds(
    evidence: HistogramEvidence, constraints: Constraints | None
) -> tuple[list[LevelBounds], FeasibleBelow]:
    """The bounds of every level, root first, and what its areas can hold."""
    hierarchy, schema = evidence.hierarchy, evidence.schema
    constraints = constraints or Constraints.none(schema.n_cells)
    names = [c.query for c in constraints.linear]
    names += [name for level in evidence.measured for name, v in level.items() if v == 0]
    queries = {name: parse_query(schema, name) for name in names}
    for constraint in constraints.linear:
        _check(constraint, hierarchy, queries[constraint.query])
    stated = [
        [
            *(StatedRange.of(c, queries[c.query]) for c in constraints.on(name)),
            *_exact_answers(evidence, level, queries),
        ]
        for level, name in enumerate(hierarchy.level_names)
    ]
    by_name = {query.name: query for query in queries.values()}
    carried = carried_bounds(hierarchy, by_name, stated, constraints.impossible)
    for level in reversed(range(hierarchy.n_levels)):
        _check_ranges(carried[level], hierarchy, level)
    levels = [
        LevelBounds(ranges, tuple(s for s in here if s.group_of is not None))
        for ranges, here in zip(carried, stated, strict=True)
    ]
    return levels, FeasibleBelow.of(
        hierarchy, schema, by_name, carried, stated, constraints.impossible
    )


def _exact_answers(
    evidence: HistogramEvidence, level: int, queries: Mapping[str, Query]
) -> Iterator[StatedRange]:
    for name, variance in evidence.measured[level].items():
        if variance == 0:
            n_areas = evidence.hierarchy.size(level)
            z = evidence.read(level, name, 0, n_areas).astype(np.float64)
            yield StatedRange(queries[name].name, Range(z, z))


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
