"""Reads public tables of bounds into constraints. They are public input: errors may quote them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.checks import MOST
from trellis.ingest.columns import check_number, code, require
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.ingest.terms import Field, Real, Text
from trellis.model.tables.constraints import ALONE, NO_BOUND, LinearConstraint, Sense
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes


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
    if rows.group is None:
        bound = np.full((hierarchy.size(table.level), query.n_cells), NO_BOUND, dtype=np.int64)
        _put(bound, rows.area, rows, table.label, repeated=False)
        return LinearConstraint(table.label, table.level, query.name, sense, bound)
    names, group = np.unique(rows.group, return_inverse=True)
    group_of = np.full(hierarchy.size(table.level), ALONE, dtype=np.int64)
    group_of[rows.area] = group
    if (moved := group_of[rows.area] != group).any():
        code = str(hierarchy.codes(table.level)[rows.area[np.argmax(moved)]])
        raise InputError(f"{table.label}: area {code!r} is in two groups.")
    _check_siblings(table, hierarchy, group_of, names)
    bound = np.full((names.size, query.n_cells), NO_BOUND, dtype=np.int64)
    _put(bound, group, rows, table.label, repeated=True)
    return LinearConstraint(table.label, table.level, query.name, sense, bound, group_of)


def facility_bounds(
    table: BoundTable, open_to_all: tuple[str, ...], hierarchy: Hierarchy, schema: Schema
) -> tuple[LinearConstraint, LinearConstraint]:
    """At least one person per facility of a type, and no one where there is no such facility.

    Types in `open_to_all`, such as households, need no facility and have no bound.
    """
    listed = read_bounds(table, Sense.AT_LEAST, hierarchy, schema)
    query = parse_query(schema, table.query)
    if len(query.factors) != 1:
        raise InputError(f"{table.label}: facilities need a query with one factor, their type.")
    labels = query.factors[0].labels
    if unknown := [name for name in open_to_all if name not in labels]:
        raise InputError(
            f"{table.label}: open_to_all names {unknown[0]!r}, which is not a type of "
            f"{query.name!r}."
        )
    lower = np.maximum(listed.bound, 0)
    upper = np.where(lower == 0, 0, NO_BOUND)
    free = np.array([label in open_to_all for label in labels])
    lower[:, free] = 0
    upper[:, free] = NO_BOUND
    at_least, at_most = f"{table.label}: at least one each", f"{table.label}: none without"
    return (
        LinearConstraint(at_least, table.level, query.name, Sense.AT_LEAST, lower),
        LinearConstraint(at_most, table.level, query.name, Sense.AT_MOST, upper),
    )


def _rows(reader: Reader, table: BoundTable, query: Query, hierarchy: Hierarchy) -> _Rows:
    """The rows as positions of areas and cells, with their bounds."""
    check_number(reader, table.value)
    fields: dict[str, Field] = {"code": code(reader, table.area, table.width)}
    fields["bound"] = Real(table.value)
    for factor in query.factors:
        require(reader, factor.name)
        fields[f"factor {factor.name}"] = Text(factor.name)
    if table.group is not None:
        require(reader, table.group)
        fields["group"] = Text(table.group)
    rows = reader.rows(fields)

    where = f"{table.label}: {reader.name}"
    codes = level_codes(hierarchy, table.level)
    area = _positions(
        rows["code"], codes, f"{where} has {{}}, which is not an area of level {table.level!r}."
    )
    cell = np.zeros(len(rows), dtype=np.int64)
    for factor in query.factors:
        labels = pa.array(factor.labels, pa.string())
        fault = f"{where} has {{}} in column {factor.name!r}, which is not a category of it."
        place = _positions(rows[f"factor {factor.name}"], labels, fault)
        cell = cell * len(factor.labels) + place
    bound = rows["bound"].to_numpy(zero_copy_only=False).astype(np.float64)
    if not (np.isfinite(bound) & (bound >= 0) & (bound <= MOST) & (bound == np.floor(bound))).all():
        raise InputError(
            f"{where} needs a whole number of at least zero in every row of {table.value!r}."
        )
    groups = None
    if table.group is not None:
        if rows["group"].null_count:
            raise InputError(f"{where} has empty rows in column {table.group!r}.")
        groups = np.array(rows["group"].to_pylist(), dtype=object)
    return _Rows(area, cell, bound.astype(np.int64), groups)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    area: NDArray[np.int64]
    cell: NDArray[np.int64]
    bound: NDArray[np.int64]
    group: NDArray[np.object_] | None


def _positions(column: pa.ChunkedArray, labels: pa.Array, fault: str) -> NDArray[np.int64]:
    """Where each text is among the labels; the first that is not is put into `fault`."""
    texts = column.combine_chunks().dictionary_encode()
    place = {label: i for i, label in enumerate(labels.to_pylist())}
    known = [place.get(text, -1) for text in texts.dictionary.to_pylist()]
    found = np.array([*known, -1], dtype=np.int64)[texts.indices.fill_null(-1).to_numpy()]
    if (found < 0).any():
        raise InputError(fault.format(repr(column[int(np.argmax(found < 0))].as_py())))
    return found


def _put(
    bound: NDArray[np.int64], unit: NDArray[np.int64], rows: _Rows, label: str, *, repeated: bool
) -> None:
    """Enter the bounds; two for one place are an error, unless they are repeated for a group."""
    bound[unit, rows.cell] = rows.bound
    place = unit * bound.shape[1] + rows.cell
    twice = not repeated and np.unique(place).size != place.size
    if twice or (bound[unit, rows.cell] != rows.bound).any():
        raise InputError(f"{label}: one area and cell has two bounds. State each once.")


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
