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
from trellis.ingest.duckdb import Reader, Source, open_source
from trellis.ingest.rows import JOINED, MOST, any_row, check_column, check_type, join_leaves
from trellis.model.hierarchy import Hierarchy

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
            check_type(reader, column)
        join_leaves(reader, hierarchy, reader.code(area, width), names)
        for column, name in names.items():
            check_column(reader, column, name)
        values = {column: f"TRY_CAST({name} AS HUGEINT)" for column, name in names.items()}
        _check_cells_positive(reader, cells, values)
        sums = [
            f"sum({_expression(form, values)}) AS cell_{i}" for i, form in enumerate(cells.values())
        ]
        table = reader.query(f"SELECT leaf, {', '.join(sums)} FROM {JOINED} GROUP BY leaf")
    return _dense(table, hierarchy.size(hierarchy.leaf_level), len(cells), reader.name)


def _check_cells_positive(
    reader: Reader, cells: Mapping[str, Form], values: Mapping[str, str]
) -> None:
    for name, form in cells.items():
        if -1 in form.values() and any_row(reader, f"{_expression(form, values)} < 0"):
            raise InputError(
                f"Cell {name!r} is negative in some rows of {reader.name}: "
                "what is subtracted must be a part of what is added."
            )


def _expression(form: Form, values: Mapping[str, str]) -> str:
    if not form:
        return "1"
    return " ".join(f"{'+' if sign > 0 else '-'} {values[column]}" for column, sign in form.items())


def _dense(table: pa.Table, n_leaves: int, n_cells: int, name: str) -> TrueCounts:
    counts = np.zeros((n_leaves, n_cells), dtype=np.int64)
    leaf = table["leaf"].to_numpy()
    for cell in range(n_cells):
        sums = table[f"cell_{cell}"].to_numpy().astype(np.float64)
        if sums.size and sums.max() > MOST:
            raise InputError(f"{name} holds impossibly large counts.")
        counts[leaf, cell] = sums.astype(np.int64)
    if float(counts.sum(dtype=np.float64)) > MOST:
        raise InputError(f"{name} holds impossibly large counts.")
    return TrueCounts(counts)
