"""Tabulates confidential records into true histograms of the leaves.

Errors name the source, the column and the attribute, never a value, an area of a record, or how
many rows are at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import InputError
from trellis.ingest.counts import Form, tabulate
from trellis.ingest.duckdb import TEXT, WHOLE_NUMBERS, Reader, Source, open_source
from trellis.ingest.rows import (
    JOINED,
    MOST,
    Fault,
    check_type,
    join_leaves,
    number_faults,
    refuse,
    too_large,
    unknown_area,
)
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

CELLS = "cells"
"""The rows with the positions of their leaf and of each category."""


def tabulate_long(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    columns: Mapping[str, str],
    count: str | None,
    width: int | None = None,
) -> TrueHistograms:
    """One column per attribute; a row counts as many as column `count` says, or one."""
    with open_source(source, confidential=True) as reader:
        names = {columns[name]: f"attribute_{i}" for i, name in enumerate(schema.names)}
        if len(names) != len(schema.names):
            raise InputError("data.attributes names one column for two attributes.")
        for attribute, column in columns.items():
            _check_categories(reader, attribute, column)
        if count is not None:
            check_type(reader, count)
            names[count] = "number"
        join_leaves(reader, hierarchy, reader.code(area, width), names)
        cell, faults = _cells(reader, schema, columns)
        if count is not None:
            faults += number_faults(reader, count, "number")
        refuse(reader, [unknown_area(reader), *faults], CELLS)
        number = "1" if count is None else "TRY_CAST(number AS HUGEINT)"
        table = reader.query(
            f"SELECT leaf, {cell} AS cell, CAST(sum({number}) AS DOUBLE) AS number "
            f"FROM {CELLS} GROUP BY leaf, {cell}"
        )
        if float(table["number"].to_numpy().sum()) > MOST:
            raise too_large(reader, number, CELLS)
    return TrueHistograms.of(
        hierarchy.size(hierarchy.leaf_level),
        schema.n_cells,
        table["leaf"].to_numpy(),
        table["cell"].to_numpy().astype(np.int64),
        table["number"].to_numpy().astype(np.int64),
    )


def tabulate_wide(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    cells: Mapping[int, tuple[str, Form]],
    width: int | None = None,
) -> TrueHistograms:
    """One expression of columns per cell, keyed by its position; others have nobody."""
    forms = dict(cells.values())
    dense = tabulate(source, hierarchy, area, forms, width).leaves
    leaf, column = np.nonzero(dense)
    position = np.array(list(cells), dtype=np.int64)
    return TrueHistograms.of(
        dense.shape[0], schema.n_cells, leaf, position[column], dense[leaf, column]
    )


def _check_categories(reader: Reader, attribute: str, column: str) -> None:
    reader.require(column)
    if not reader.holds(column, TEXT, WHOLE_NUMBERS, "BOOLEAN"):
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.kind(column)} values, not "
            f"categories of {attribute!r}: these are text or whole numbers."
        )


def _cells(reader: Reader, schema: Schema, columns: Mapping[str, str]) -> tuple[str, list[Fault]]:
    """Put the place of every category beside the rows: the position of a row's cell, as SQL.

    A row outside the declared categories is at fault.
    """
    places, joins, terms, faults = [], [], [], []
    stride = schema.n_cells
    for i, (name, categories) in enumerate(zip(schema.names, schema.categories, strict=True)):
        stride //= len(categories)
        # A table of one row per category: values are never put into SQL.
        reader.register(
            f"categories_{i}",
            pa.table(
                {"name": pa.array(categories, pa.string()), "place": np.arange(len(categories))}
            ),
        )
        places.append(f"categories_{i}.place AS place_{i}")
        joins.append(
            f"LEFT JOIN categories_{i} ON categories_{i}.name = CAST(attribute_{i} AS VARCHAR)"
        )
        terms.append(f"place_{i} * {stride}")
        words = (
            f"Column {columns[name]!r} of {reader.name} has values that are missing or not a "
            f"category of attribute {name!r}. Declare every category in schema, or clean the "
            "records."
        )
        faults.append(
            Fault(words, f"place_{i} IS NULL", {"area": "area", f"attribute_{i}": columns[name]})
        )
    reader.view(CELLS, f"SELECT {JOINED}.*, {', '.join(places)} FROM {JOINED} {' '.join(joins)}")
    return " + ".join(terms), faults
