"""Which constraints clash, and where, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trellis.model.tables.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.feasibility.clashes import clashing_rows
from trellis.numerics.feasibility.feasible_below import FeasibleBelow
from trellis.numerics.feasibility.whole_program import Clashing, Whose

Floats = NDArray[np.float64]

MOST_TOLD = 6
"""Clashing bounds that a message tells."""


def clash_in_words(
    constraints: Constraints, schema: Schema, room: FeasibleBelow, level: int, area: int
) -> str:
    """Why an area can hold nothing.

    Its family is looked at first: its own constraints and the ranges of its children. If these can
    hold, the reason lies further down.
    """
    rows = _family_rows(constraints, schema, room, level, area)
    found = clashing_rows(*_program(rows), range(len(rows)))
    bounds = [rows[i].words for i in found]
    if not found:
        bounds = [_bound_in_words(constraints, schema, room, b) for b in room.clash(level, area)]
    return _in_words(room.hierarchy, level, area, bounds)


def _in_words(hierarchy: Hierarchy, level: int, area: int, bounds: Sequence[str]) -> str:
    code, name = str(hierarchy.codes(level)[area]), hierarchy.level_names[level]
    if not bounds:
        return (
            f"constraints on area {code!r} of level {name!r} and below it cannot be kept in whole "
            "numbers."
        )
    more = f"; and {len(bounds) - MOST_TOLD} more" if len(bounds) > MOST_TOLD else ""
    return (
        f"constraints cannot be kept in area {code!r} of level {name!r}. These {len(bounds)} "
        "clash, and without any one of them the others could hold: "
        f"{'; '.join(bounds[:MOST_TOLD])}{more}."
    )


def _bound_in_words(
    constraints: Constraints, schema: Schema, room: FeasibleBelow, bound: Clashing
) -> str:
    """As stated, or else as a range that follows from what is."""
    tree, level = room.hierarchy, bound.level
    cell = _cell_name(parse_query(schema, bound.query), bound.cell)
    if bound.whose is Whose.OTHER_CHILDREN:
        parent = str(tree.codes(level - 1)[bound.number])
        return f"{_number(bound)} of {cell} in other areas of {parent!r}"
    is_group = bound.whose is Whose.GROUP
    where = f"group {bound.number + 1}" if is_group else str(tree.codes(level)[bound.number])
    stated = [
        f"{c.label} ({cell} in {where!r} {c.sense} {c.bound[bound.number, bound.cell]})"
        for c in constraints.on(tree.level_names[level])
        if parse_query(schema, c.query).name == bound.query
        and (c.group_of is not None) == is_group
        and c.bound[bound.number, bound.cell] in (bound.lower, bound.upper)
    ]
    return " and ".join(stated) or f"{_number(bound)} of {cell} in {where!r}"


def _number(bound: Clashing) -> str:
    if bound.lower == bound.upper:
        return f"{bound.lower:g}"
    least = [f"at least {bound.lower:g}"] if bound.lower > 0 else []
    most = [f"at most {bound.upper:g}"] if np.isfinite(bound.upper) else []
    return " and ".join(least + most)


@dataclass(frozen=True, slots=True)
class _Row:
    """One bound: which cells of which children, and what it says."""

    words: str
    children: NDArray[np.int64]
    cells: NDArray[np.bool_]
    lower: float
    upper: float


def _family_rows(
    constraints: Constraints, schema: Schema, room: FeasibleBelow, level: int, area: int
) -> list[_Row]:
    """Bounds of the area itself, on the sum of its children, and of each child."""
    hierarchy = room.hierarchy
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
        for name, box in room.ranges[level + 1].items():
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
