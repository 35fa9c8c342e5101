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
from trellis.ingest.rows import JOINED, MOST, any_row, check_column, check_type, join_leaves
from trellis.model.hierarchy import Hierarchy
from trellis.model.schema import Schema


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
        if count is not None:
            check_column(reader, count, "number")
        cell, joins = _cell(reader, schema, columns)
        number = "1" if count is None else "TRY_CAST(number AS HUGEINT)"
        table = reader.query(
            f"SELECT leaf, {cell} AS cell, CAST(sum({number}) AS DOUBLE) AS number "
            f"FROM {JOINED} {joins} GROUP BY leaf, {cell}"
        )
    return _histograms(table, hierarchy, schema, reader.name)


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


def _cell(reader: Reader, schema: Schema, columns: Mapping[str, str]) -> tuple[str, str]:
    """The position of a row's cell, as SQL, with the joins that it needs.

    A row outside the declared categories is an error.
    """
    terms, joins = [], []
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
        text = f"CAST(attribute_{i} AS VARCHAR)"
        known = f"{text} IN (SELECT name FROM categories_{i})"
        if any_row(reader, f"attribute_{i} IS NULL OR NOT {known}"):
            raise InputError(
                f"Column {columns[name]!r} of {reader.name} has values that are missing or no "
                f"category of attribute {name!r}. Declare every category in schema, or clean the "
                "records."
            )
        joins.append(f"JOIN categories_{i} ON categories_{i}.name = {text}")
        terms.append(f"categories_{i}.place * {stride}")
    return " + ".join(terms), " ".join(joins)


def _histograms(table: pa.Table, hierarchy: Hierarchy, schema: Schema, name: str) -> TrueHistograms:
    number = table["number"].to_numpy()
    if number.size and float(number.sum()) > MOST:
        raise InputError(f"{name} holds impossibly large counts.")
    return TrueHistograms.of(
        hierarchy.size(hierarchy.leaf_level),
        schema.n_cells,
        table["leaf"].to_numpy(),
        table["cell"].to_numpy().astype(np.int64),
        number.astype(np.int64),
    )
