"""Whether anything can satisfy the stated constraints, in the hierarchy as a whole.

Answers add up the hierarchy, so bounds do: the least answers of the children sum to a least answer
of the parent, and the greatest to its greatest. `implied_bounds` gives every level what follows
from below, and what follows between a query and a coarser one,

    sum of lower(fine) <= coarse <= sum of upper(fine),
    lower(coarse) - upper(the other fine cells) <= fine <= upper(coarse) - lower(the other ones).

For constraints on nested queries, families of areas are networks of flows, and what remains
possible here is possible in whole numbers on the whole hierarchy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trellis.errors import SpecError
from trellis.model.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.hierarchy import Hierarchy
from trellis.model.queries import Query, is_finer, parse_query
from trellis.model.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Least and greatest answers of one query on one level: areas x cells."""

    lower: Floats
    upper: Floats


def implied_bounds(
    constraints: Constraints, hierarchy: Hierarchy, schema: Schema
) -> list[dict[str, Box]]:
    """For every level, root first, the bounds of each constrained query, its own and implied."""
    names = list(dict.fromkeys(c.query for c in constraints.linear))
    queries = [parse_query(schema, name) for name in names]
    levels: list[dict[str, Box]] = []
    for level in reversed(range(hierarchy.n_levels)):
        boxes = {q.name: _free(hierarchy.size(level), q, constraints.impossible) for q in queries}
        if levels:
            _from_below(boxes, levels[-1], constraints, hierarchy, level)
        for constraint in constraints.on(hierarchy.level_names[level]):
            if constraint.group_of is None:
                _tighten(boxes[constraint.query], constraint)
        _between_queries(boxes, queries)
        levels.append(boxes)
    return levels[::-1]


def check_feasible(constraints: Constraints, hierarchy: Hierarchy, schema: Schema) -> None:
    """Refuse constraints that nothing can satisfy, naming an area and the fewest that clash."""
    if not constraints.linear:
        return
    boxes = implied_bounds(constraints, hierarchy, schema)
    for level in reversed(range(hierarchy.n_levels)):
        for name, box in boxes[level].items():
            crossed = (box.lower > box.upper).any(axis=1)
            if crossed.any():
                area = int(np.argmax(crossed))
                raise SpecError(_report(constraints, hierarchy, schema, boxes, level, area, name))


# -- bounds ---------------------------------------------------------------------------------------


def _free(n_areas: int, query: Query, impossible: NDArray[np.bool_]) -> Box:
    """No bound, except where all cells of an answer are impossible."""
    possible = np.zeros(query.n_cells, dtype=bool)
    possible[query.cell_of[~impossible]] = True
    upper = np.where(possible, np.inf, 0.0)
    return Box(np.zeros((n_areas, query.n_cells)), np.tile(upper, (n_areas, 1)))


def _tighten(box: Box, constraint: LinearConstraint) -> None:
    stated = constraint.bound != NO_BOUND
    bound = constraint.bound.astype(np.float64)
    if constraint.sense in (Sense.EQUAL, Sense.AT_LEAST):
        np.maximum(box.lower, np.where(stated, bound, 0.0), out=box.lower)
    if constraint.sense in (Sense.EQUAL, Sense.AT_MOST):
        np.minimum(box.upper, np.where(stated, bound, np.inf), out=box.upper)


def _from_below(
    boxes: dict[str, Box],
    below: dict[str, Box],
    constraints: Constraints,
    hierarchy: Hierarchy,
    level: int,
) -> None:
    start = hierarchy.child_start[level][:-1]
    for name, box in boxes.items():
        np.maximum(box.lower, np.add.reduceat(below[name].lower, start, axis=0), out=box.lower)
        np.minimum(box.upper, np.add.reduceat(below[name].upper, start, axis=0), out=box.upper)
    for constraint in constraints.on(hierarchy.level_names[level + 1]):
        if constraint.group_of is not None:
            _from_groups(boxes, below[constraint.query], constraint, hierarchy, level)


def _from_groups(
    boxes: dict[str, Box],
    below: Box,
    constraint: LinearConstraint,
    hierarchy: Hierarchy,
    level: int,
) -> None:
    """Groups and areas outside of them take the place of single children."""
    group_of = constraint.group_of
    assert group_of is not None
    parents = hierarchy.parents(level + 1)
    n_groups, n_cells = constraint.bound.shape
    member = group_of != ALONE
    groups = Box(np.zeros((n_groups, n_cells)), np.zeros((n_groups, n_cells)))
    np.add.at(groups.lower, group_of[member], below.lower[member])
    np.add.at(groups.upper, group_of[member], below.upper[member])
    _tighten(groups, constraint)
    parent_of_group = np.zeros(n_groups, dtype=np.int64)
    parent_of_group[group_of[member]] = parents[member]
    box = boxes[constraint.query]
    lower, upper = np.zeros_like(box.lower), np.zeros_like(box.upper)
    for total, single, grouped in (
        (lower, below.lower, groups.lower),
        (upper, below.upper, groups.upper),
    ):
        np.add.at(total, parents[~member], single[~member])
        np.add.at(total, parent_of_group, grouped)
    np.maximum(box.lower, lower, out=box.lower)
    np.minimum(box.upper, upper, out=box.upper)


def _between_queries(boxes: dict[str, Box], queries: Sequence[Query]) -> None:
    """Two rounds: what a chain of queries implies has come through by then."""
    pairs = [(a, b) for a in queries for b in queries if a is not b and is_finer(a, b)]
    for fine, coarse in pairs + pairs[::-1]:
        image = np.zeros(fine.n_cells, dtype=np.int64)
        image[fine.cell_of] = coarse.cell_of
        f, c = boxes[fine.name], boxes[coarse.name]
        least, most = _summed(f.lower, image, coarse), _summed(f.upper, image, coarse)
        np.maximum(c.lower, least, out=c.lower)
        np.minimum(c.upper, most, out=c.upper)
        np.minimum(f.upper, c.upper[:, image] - (least[:, image] - f.lower), out=f.upper)
        with np.errstate(invalid="ignore"):
            others = most[:, image] - f.upper  # infinite - infinite: nothing follows
        room = np.where(np.isfinite(others), c.lower[:, image] - others, 0.0)
        np.maximum(f.lower, room, out=f.lower)


def _summed(values: Floats, image: NDArray[np.int64], coarse: Query) -> Floats:
    total = np.zeros((values.shape[0], coarse.n_cells))
    np.add.at(total.T, image, values.T)
    return total


# -- report ---------------------------------------------------------------------------------------


def _report(
    constraints: Constraints,
    hierarchy: Hierarchy,
    schema: Schema,
    boxes: list[dict[str, Box]],
    level: int,
    area: int,
    query: str,
) -> str:
    """The family of an area as a linear program: its own constraints and those of its children."""
    from trellis.numerics.clashes import clashing_rows  # commands that only check do without

    code, name = hierarchy.codes(level)[area], hierarchy.level_names[level]
    rows = _family_rows(constraints, hierarchy, schema, boxes, level, area)
    found = clashing_rows(*_program(rows), range(len(rows)))
    if not found:  # in whole numbers only, or between levels further apart
        box = boxes[level][query]
        cell = int(np.argmax(box.lower[area] > box.upper[area]))
        return (
            f"constraints cannot be kept in area {str(code)!r} of level {name!r}: of {query!r}, "
            f"cell {cell + 1}, at least {box.lower[area, cell]:g} and at most "
            f"{box.upper[area, cell]:g} are asked for, by constraints on it and below it."
        )
    stated = "; ".join(rows[i].words for i in found[:6])
    more = f"; and {len(found) - 6} more" if len(found) > 6 else ""
    return (
        f"constraints cannot be kept in area {str(code)!r} of level {name!r}. These "
        f"{len(found)} clash, and without any one of them the others could hold: {stated}{more}."
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One bound: which cells of which children, and what it says."""

    words: str
    children: NDArray[np.int64]
    cells: NDArray[np.bool_]
    lower: float
    upper: float


def _family_rows(
    constraints: Constraints,
    hierarchy: Hierarchy,
    schema: Schema,
    boxes: list[dict[str, Box]],
    level: int,
    area: int,
) -> list[_Row]:
    """Bounds of the area itself, on the sum of its children, and of each child."""
    is_leaf = level == hierarchy.leaf_level
    first, last = (0, 1) if is_leaf else hierarchy.child_start[level][area : area + 2].tolist()
    everyone = np.arange(last - first)
    rows: list[_Row] = []
    for c in constraints.on(hierarchy.level_names[level]):
        if c.group_of is None:
            rows += _stated(c, c.bound[area], everyone, schema, str(hierarchy.codes(level)[area]))
    if constraints.impossible.any():
        rows.append(_Row("structural zeros", everyone, constraints.impossible, 0.0, 0.0))
    if is_leaf:
        return rows
    below = hierarchy.level_names[level + 1]
    for c in constraints.on(below):
        if c.group_of is not None:
            for group in np.unique(c.group_of[first:last]):
                if group != ALONE:
                    members = np.flatnonzero(c.group_of[first:last] == group)
                    rows += _stated(c, c.bound[group], members, schema, f"group {group + 1}")
    for child in everyone:
        code = str(hierarchy.codes(level + 1)[first + child])
        for name, box in boxes[level + 1].items():
            query = parse_query(schema, name)
            for cell in range(query.n_cells):
                low, high = box.lower[first + child, cell], box.upper[first + child, cell]
                if low > 0 or np.isfinite(high):
                    where = f"of {_cell_name(query, cell)} in {code!r}"
                    inside, only = query.cell_of == cell, np.array([child])
                    if low > 0:
                        words = f"at least {low:g} {where}"
                        rows.append(_Row(words, only, inside, float(low), np.inf))
                    if np.isfinite(high):
                        words = f"at most {high:g} {where}"
                        rows.append(_Row(words, only, inside, 0.0, float(high)))
    return rows


def _stated(
    constraint: LinearConstraint,
    bound: NDArray[np.int64],
    children: NDArray[np.int64],
    schema: Schema,
    code: str,
) -> list[_Row]:
    query = parse_query(schema, constraint.query)
    rows = []
    for cell in np.flatnonzero(bound != NO_BOUND):
        value = float(bound[cell])
        low = value if constraint.sense is not Sense.AT_MOST else 0.0
        high = value if constraint.sense is not Sense.AT_LEAST else np.inf
        where = f"{_cell_name(query, int(cell))} in {code!r}"
        words = f"{constraint.label} ({where} {constraint.sense} {value:g})"
        rows.append(_Row(words, children, query.cell_of == cell, low, high))
    return rows


def _program(rows: Sequence[_Row]) -> tuple[csr_array, Floats, Floats]:
    """Variables are children x classes of cells that no row tells apart."""
    masks = np.array([row.cells for row in rows])
    _, kind = np.unique(masks, axis=1, return_inverse=True)
    kind = kind.ravel()
    n_kinds = int(kind.max()) + 1
    n_children = 1 + max(int(row.children.max()) for row in rows)
    data = [
        (i, child * n_kinds + k)
        for i, row in enumerate(rows)
        for child in row.children
        for k in np.unique(kind[row.cells])
    ]
    where = np.array(data, dtype=np.int64).reshape(-1, 2)
    matrix = csr_array(
        (np.ones(len(where)), (where[:, 0], where[:, 1])),
        shape=(len(rows), n_children * n_kinds),
    )
    lower = np.array([row.lower for row in rows])
    return matrix, lower, np.array([row.upper for row in rows])


def _cell_name(query: Query, cell: int) -> str:
    if not query.factors:
        return "the total"
    positions = np.unravel_index(cell, query.shape)
    labels = [f.labels[int(p)] for f, p in zip(query.factors, positions, strict=True)]
    return " x ".join(labels)
