"""Counts by area and cell from a table with one column per attribute, public or confidential.

Errors name the source, the column and the attribute, never a value, an area of a record, or how
many rows are at fault: all of that may be confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from trellis.errors import InputError
from trellis.ingest.checks import (
    MOST,
    Fault,
    leaf_of,
    number_faults,
    refuse,
    too_large,
    unknown_area,
)
from trellis.ingest.columns import check_number, code, holds, require
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Kind, Reader, Source
from trellis.ingest.terms import EACH, Field, Linear, Lookup, Missing, Number, Rows, Text
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy


def histograms_of_rows(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    columns: Mapping[str, str],
    count: str | None,
    width: int | None = None,
) -> SparseCounts:
    """One column per attribute; a row counts as many as column `count` says, or one."""
    with open_source(source, confidential=True) as reader:
        if len(set(columns.values())) != len(schema.names):
            raise InputError("data.attributes names one column for two attributes.")
        for attribute, column in columns.items():
            _check_categories(reader, attribute, column)
        if count is not None:
            check_number(reader, count)
        rows = _rows(reader, hierarchy, schema, area, columns, count, width)
        refuse(reader, list(_faults(reader, schema, columns, count)), rows)
        number = EACH if count is None else "number"
        table, _ = reader.sums(rows, ["leaf", "cell"], [number])
        sums = table[number]
        if sums.null_count or float(sums.to_numpy().sum(dtype=np.float64)) > MOST:
            raise too_large(reader, rows, number)
    return SparseCounts.grouped(
        hierarchy.size(hierarchy.leaf_level),
        schema.n_cells,
        table["leaf"].to_numpy().astype(np.int64),
        table["cell"].to_numpy().astype(np.int64),
        sums.to_numpy().astype(np.int64),
    )


def _check_categories(reader: Reader, attribute: str, column: str) -> None:
    require(reader, column)
    if not holds(reader, column, Kind.TEXT, Kind.WHOLE, Kind.TRUTH):
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.types[column].word} values, not "
            f"categories of {attribute!r}: these are text or whole numbers."
        )


def _rows(
    reader: Reader,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    columns: Mapping[str, str],
    count: str | None,
    width: int | None,
) -> Rows:
    """Rows with the places of their leaf and of each category, and so the position of a cell."""
    fields: dict[str, Field] = {"area": code(reader, area, width)}
    lookups = {"leaf": leaf_of("area", hierarchy)}
    factors, stride = [], schema.n_cells
    for i, (name, categories) in enumerate(zip(schema.names, schema.categories, strict=True)):
        stride //= len(categories)
        fields[f"attribute_{i}"] = Text(columns[name])
        lookups[f"place_{i}"] = Lookup(f"attribute_{i}", pa.array(categories, pa.string()))
        factors.append((f"place_{i}", stride))
    numbers = {"cell": Linear(tuple(factors))}
    if count is not None:
        fields["given"] = Number(count)
        numbers["number"] = Linear((("given", 1),))
    return Rows(fields, lookups, numbers)


def _faults(
    reader: Reader, schema: Schema, columns: Mapping[str, str], count: str | None
) -> Iterator[Fault]:
    """A row outside the hierarchy or the declared categories is at fault."""
    yield unknown_area(reader)
    for i, name in enumerate(schema.names):
        yield Fault(
            f"Column {columns[name]!r} of {reader.name} has values that are missing or not a "
            f"category of attribute {name!r}. Declare every category in schema, or clean the "
            "records.",
            Missing(f"place_{i}"),
            {"area": "area", f"attribute_{i}": columns[name]},
        )
    if count is not None:
        yield from number_faults(reader, count, "given")
