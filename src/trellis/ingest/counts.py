"""Tabulates confidential records into true counts of the leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trellis.confidential.counts import TrueCounts
from trellis.errors import InputError
from trellis.ingest.duckdb import TEXT, WHOLE_NUMBERS, Reader, Source, open_source, quoted
from trellis.model.hierarchy import Hierarchy

_MOST = 2**48
"""Counts above this are not people; it also keeps sums exact in every later step."""

Form = Mapping[str, int]
"""A cell as columns with the factor +1 or -1; empty: each row counts one."""


def tabulate(
    source: Source,
    hierarchy: Hierarchy,
    area: str,
    cells: Mapping[str, Form],
    width: int | None = None,
) -> TrueCounts:
    """Add up every cell for every leaf; a leaf without rows counts zero."""
    with open_source(source, confidential=True) as reader:
        columns = sorted({column for form in cells.values() for column in form})
        names = {column: f"count_{i}" for i, column in enumerate(columns)}
        for column in columns:
            _check_type(reader, column)
        _join_leaves(reader, hierarchy, reader.code(area, width), names)
        for column, name in names.items():
            _check_column(reader, column, name)
        values = {column: f"TRY_CAST({name} AS HUGEINT)" for column, name in names.items()}
        _check_cells_positive(reader, cells, values)
        sums = [
            f"sum({_expression(form, values)}) AS cell_{i}" for i, form in enumerate(cells.values())
        ]
        table = reader.query(f"SELECT leaf, {', '.join(sums)} FROM {_JOINED} GROUP BY leaf")
    return _dense(table, hierarchy.size(hierarchy.leaf_level), len(cells), reader.name)


_JOINED = "joined"
_REAL_NUMBERS = r"DOUBLE|FLOAT|DECIMAL\(.*\)"
_TEXT_NUMBER = r"'\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*'"


def _join_leaves(reader: Reader, hierarchy: Hierarchy, code: str, names: Mapping[str, str]) -> None:
    """Put the leaf's position beside the counts of every row; a row without one is an error.

    Counts get names of our own, since the source's columns may be called anything.
    """
    codes = hierarchy.codes(hierarchy.leaf_level)
    leaves = pa.table({"code": codes.astype(object), "leaf": np.arange(codes.size)})
    reader.register("leaves", leaves)
    selected = [f"{code} AS code", *(f"{quoted(c)} AS {name}" for c, name in names.items())]
    reader.view(
        _JOINED,
        f"SELECT s.* EXCLUDE (code), l.leaf FROM (SELECT {', '.join(selected)} "
        f"FROM {reader.rows}) s LEFT JOIN leaves l ON s.code = l.code",
    )
    if _any(reader, "leaf IS NULL"):
        raise InputError(
            f"{reader.name} has rows whose area is missing or is no leaf of the hierarchy. "
            "Compare its area codes (spelling, leading zeros) with the public list of areas."
        )


def _check_type(reader: Reader, column: str) -> None:
    reader.require(column)
    if not reader.holds(column, TEXT, WHOLE_NUMBERS, _REAL_NUMBERS):  # text: in a CSV file
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.kind(column)} values, not counts."
        )


def _check_column(reader: Reader, column: str, name: str) -> None:
    number = f"TRY_CAST({name} AS DOUBLE)"
    unreadable = f"{number} IS NULL OR NOT isfinite({number})"
    if reader.holds(column, TEXT):
        # As text, 1_000 or 0.99999999999999999999 would pass for a whole number when cast.
        unreadable += f" OR NOT regexp_full_match({name}, {_TEXT_NUMBER})"
    for fault, words in (
        (unreadable, "missing or unreadable"),
        (f"{number} < 0", "negative"),
        (f"{number} <> floor({number})", "fractional"),
        (f"{number} > {_MOST}", "impossibly large"),
    ):
        if _any(reader, fault):
            raise InputError(
                f"Column {column!r} of {reader.name} has {words} counts. "
                "Every row needs a whole number of at least zero."
            )


def _check_cells_positive(
    reader: Reader, cells: Mapping[str, Form], values: Mapping[str, str]
) -> None:
    for name, form in cells.items():
        if -1 in form.values() and _any(reader, f"{_expression(form, values)} < 0"):
            raise InputError(
                f"Cell {name!r} is negative in some rows of {reader.name}: "
                "what is subtracted must be a part of what is added."
            )


def _expression(form: Form, values: Mapping[str, str]) -> str:
    if not form:
        return "1"
    return " ".join(f"{'+' if sign > 0 else '-'} {values[column]}" for column, sign in form.items())


def _any(reader: Reader, condition: str) -> bool:
    found = reader.query(f"SELECT 1 FROM {_JOINED} WHERE {condition} LIMIT 1")
    return found.num_rows > 0


def _dense(table: pa.Table, n_leaves: int, n_cells: int, name: str) -> TrueCounts:
    counts = np.zeros((n_leaves, n_cells), dtype=np.int64)
    leaf = table["leaf"].to_numpy()
    for cell in range(n_cells):
        sums = table[f"cell_{cell}"].to_numpy().astype(np.float64)
        if sums.size and sums.max() > _MOST:
            raise InputError(f"{name} holds impossibly large counts.")
        counts[leaf, cell] = sums.astype(np.int64)
    if float(counts.sum(dtype=np.float64)) > _MOST:
        raise InputError(f"{name} holds impossibly large counts.")
    return TrueCounts(counts)
