"""Whether anything can satisfy the stated constraints, in the hierarchy as a whole.

Every level gets what follows from below and between queries (`model.carried_bounds`). What is
refused here is impossible. What is not may still be: unions of cells of one query are not looked
at, and neither are queries of which none is the finer one. Records that keep all constraints are
the proof that they can be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trellis.errors import SpecError
from trellis.model.carried_bounds import Range, StatedRange, carried_bounds
from trellis.model.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.hierarchy import Hierarchy
from trellis.model.queries import Query, parse_query
from trellis.model.schema import Schema

Floats = NDArray[np.float64]


def implied_bounds(
    constraints: Constraints, hierarchy: Hierarchy, schema: Schema
) -> list[dict[str, Range]]:
    """For every level, root first, the bounds of each query constrained there or below."""
    queries = {c.query: parse_query(schema, c.query) for c in constraints.linear}
    stated = [
        [StatedRange.of(c, queries[c.query]) for c in constraints.on(name)]
        for name in hierarchy.level_names
    ]
    by_name = {query.name: query for query in queries.values()}
    return carried_bounds(hierarchy, by_name, stated, constraints.impossible)


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


# -- report ---------------------------------------------------------------------------------------


def _report(
    constraints: Constraints,
    hierarchy: Hierarchy,
    schema: Schema,
    boxes: list[dict[str, Range]],
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
    boxes: list[dict[str, Range]],
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
