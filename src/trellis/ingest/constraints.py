"""Reads public tables of bounds into constraints. They are public input: errors may quote them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source, quoted
from trellis.ingest.rows import MOST, check_type
from trellis.model.constraints import ALONE, NO_BOUND, LinearConstraint, Sense
from trellis.model.hierarchy import Hierarchy
from trellis.model.queries import Query, parse_query
from trellis.model.schema import Schema


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A public table with one row per area (or group of areas) and cell of a query.

    Columns bear the names of the query's factors; `value` holds the right-hand side. Cells without
    a row are left free.
    """

    label: str
    source: Source
    level: str
    area: str
    query: str
    value: str
    width: int | None = None
    group: str | None = None


def read_bounds(
    table: BoundTable, sense: Sense, hierarchy: Hierarchy, schema: Schema
) -> LinearConstraint:
    """One bound for each area and cell that the table lists."""
    query = parse_query(schema, table.query)
    with open_source(table.source) as reader:
        rows = _rows(reader, table, query, hierarchy)
    if table.group is None:
        bound = np.full((hierarchy.size(table.level), query.n_cells), NO_BOUND, dtype=np.int64)
        _put(bound, rows["area"].to_numpy(), rows, table)
        return LinearConstraint(table.label, table.level, query.name, sense, bound)
    names, group = np.unique(rows["grouping"].to_numpy().astype(object), return_inverse=True)
    group_of = np.full(hierarchy.size(table.level), ALONE, dtype=np.int64)
    area = rows["area"].to_numpy()
    order = np.argsort(area, kind="stable")
    moved = (np.diff(area[order]) == 0) & (np.diff(group[order]) != 0)
    if moved.any():
        code = hierarchy.codes(table.level)[area[order][np.argmax(moved)]]
        raise InputError(f"{table.label}: area {str(code)!r} is in two groups of {reader.name}.")
    group_of[area] = group
    _check_siblings(table, hierarchy, group_of, names)
    bound = np.full((names.size, query.n_cells), NO_BOUND, dtype=np.int64)
    _put(bound, group, rows, table, repeated=True)
    return LinearConstraint(table.label, table.level, query.name, sense, bound, group_of)


def facility_bounds(
    table: BoundTable, open_to_all: tuple[str, ...], hierarchy: Hierarchy, schema: Schema
) -> tuple[LinearConstraint, LinearConstraint]:
    """At least one person per facility of a type, and nobody where there is none of it.

    Types in `open_to_all`, such as households, need no facility and have no bound.
    """
    listed = read_bounds(table, Sense.AT_LEAST, hierarchy, schema)
    query = parse_query(schema, table.query)
    if len(query.factors) != 1:
        raise InputError(f"{table.label}: facilities go with a query of one factor, their type.")
    labels = query.factors[0].labels
    if unknown := [name for name in open_to_all if name not in labels]:
        raise InputError(f"{table.label}: open_to_all names {unknown[0]!r}, which is no type of "
                         f"{query.name!r}.")  # fmt: skip
    lower = np.maximum(listed.bound, 0)
    upper = np.where(lower == 0, 0, NO_BOUND)
    free = np.array([label in open_to_all for label in labels])
    lower[:, free] = 0
    upper[:, free] = NO_BOUND
    return (
        LinearConstraint(f"{table.label}: at least one each", table.level, query.name,
                         Sense.AT_LEAST, lower),
        LinearConstraint(f"{table.label}: none without", table.level, query.name,
                         Sense.AT_MOST, upper),
    )  # fmt: skip


def _rows(reader: Reader, table: BoundTable, query: Query, hierarchy: Hierarchy) -> pa.Table:
    """Columns area (position), cell (position), bound, and grouping if there are groups."""
    check_type(reader, table.value)
    codes = hierarchy.codes(table.level)
    reader.register("areas", pa.table({"code": codes.astype(object), "at": np.arange(codes.size)}))
    cell, joins = ["0"], []
    stride = query.n_cells
    for i, factor in enumerate(query.factors):
        stride //= len(factor.labels)
        labels = pa.array(factor.labels, pa.string())
        reader.register(f"labels_{i}", pa.table({"label": labels, "at": np.arange(len(labels))}))
        text = f"CAST({reader.require(factor.name)} AS VARCHAR)"
        joins.append(f"LEFT JOIN labels_{i} ON labels_{i}.label = s.factor_{i}")
        cell.append(f"labels_{i}.at * {stride}")
        query_text = f"SELECT {text} AS label FROM {reader.rows} WHERE {text} IS NULL OR {text} NOT IN (SELECT label FROM labels_{i}) LIMIT 1"
        for row in reader.query(query_text).to_pylist():
            raise InputError(
                f"{table.label}: {row['label']!r} in column {factor.name!r} of {reader.name} is "
                f"no category of {factor.name!r}."
            )
    factors = [f"CAST({quoted(f.name)} AS VARCHAR) AS factor_{i}" for i, f in enumerate(query.factors)]
    grouping = [] if table.group is None else [f"CAST({reader.require(table.group)} AS VARCHAR) AS grouping"]
    reader.view("stated", f"SELECT {', '.join([f'{reader.code(table.area, table.width)} AS code', f'TRY_CAST({quoted(table.value)} AS DOUBLE) AS bound', *factors, *grouping])} FROM {reader.rows}")
    rows = reader.query(
        f"SELECT areas.at AS area, {' + '.join(cell)} AS cell, s.* FROM stated s "
        f"LEFT JOIN areas ON areas.code = s.code {' '.join(joins)}"
    )
    if rows["area"].null_count:
        code = next(r for r in rows.to_pylist() if r["area"] is None)["code"]
        raise InputError(
            f"{table.label}: area {code!r} of {reader.name} is no area of level {table.level!r}."
        )
    bound = rows["bound"].to_numpy(zero_copy_only=False).astype(np.float64)
    if not (np.isfinite(bound) & (bound >= 0) & (bound <= MOST) & (bound == np.floor(bound))).all():
        raise InputError(
            f"{table.label}: column {table.value!r} of {reader.name} needs a whole number of at "
            "least zero in every row."
        )
    if table.group is not None and rows["grouping"].null_count:
        raise InputError(f"{table.label}: column {table.group!r} of {reader.name} has empty rows.")
    return rows


def _put(
    bound: NDArray[np.int64], row: NDArray, rows: pa.Table, table: BoundTable, *, repeated: bool = False
) -> None:
    """Enter the bounds; two different ones for one place are an error."""
    cell = rows["cell"].to_numpy()
    value = rows["bound"].to_numpy().astype(np.int64)
    bound[row, cell] = value
    places = row.astype(np.int64) * bound.shape[1] + cell
    if (bound[row, cell] != value).any() or (not repeated and np.unique(places).size != places.size):
        raise InputError(f"{table.label}: one area and cell has two bounds. State each once.")


def _check_siblings(
    table: BoundTable, hierarchy: Hierarchy, group_of: NDArray[np.int64], names: NDArray
) -> None:
    level = hierarchy.index(table.level)
    if not level:
        raise InputError(f"{table.label}: level {table.level!r} is the root and has no siblings.")
    parents = hierarchy.parents(level)
    grouped = np.flatnonzero(group_of != ALONE)
    least = np.full(names.size, parents.size, dtype=np.int64)
    most = np.full(names.size, -1, dtype=np.int64)
    np.minimum.at(least, group_of[grouped], parents[grouped])
    np.maximum.at(most, group_of[grouped], parents[grouped])
    if (bad := np.flatnonzero(least != most)).size:
        raise InputError(
            f"{table.label}: group {str(names[bad[0]])!r} has areas of two parents. A group is a "
            f"part of one area above level {table.level!r}: split it."
        )
