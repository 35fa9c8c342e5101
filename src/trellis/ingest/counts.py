"""Tabulates confidential records into true counts of the leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.ingest.duckdb import Reader, Source, open_source
from trellis.ingest.rows import (
    JOINED,
    MOST,
    Fault,
    check_type,
    join_leaves,
    number_faults,
    refuse_found,
    too_large,
    unknown_area,
)
from trellis.model.trees.hierarchy import Hierarchy

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

Form = Mapping[str, int]
"""A cell as columns with the factor +1 or -1; empty: each row counts one."""


def tabulate(
    source: Source,
    hierarchy: Hierarchy,
    area: str,
    cells: Mapping[str, Form],
    width: int | None = None,
) -> TrueCounts:
    """Add up every cell for every leaf; a leaf without rows counts zero.

    One pass over the source adds up and finds what is wrong with it.
    """
    with open_source(source, confidential=True) as reader:
        columns = sorted({column for form in cells.values() for column in form})
        names = {column: f"count_{i}" for i, column in enumerate(columns)}
        for column in columns:
            check_type(reader, column)
        join_leaves(reader, hierarchy, reader.code(area, width), names)
        values = {c: f"CAST(TRY_CAST({n} AS BIGINT) AS HUGEINT)" for c, n in names.items()}
        forms = [_expression(form, values) for form in cells.values()]
        faults = [unknown_area(reader)]
        faults += [fault for c, n in names.items() for fault in number_faults(reader, c, n)]
        faults += [
            _negative_cell(reader, name, form, {names[c]: c for c in cells[name]})
            for name, form in zip(cells, forms, strict=True)
            if -1 in cells[name].values()
        ]
        selected = [
            *(f"TRY_CAST(sum({form}) AS BIGINT) AS cell_{i}" for i, form in enumerate(forms)),
            *(f"bool_or({fault.test}) AS fault_{i}" for i, fault in enumerate(faults)),
        ]
        table = reader.query(f"SELECT leaf, {', '.join(selected)} FROM {JOINED} GROUP BY leaf")
        refuse_found(
            reader, [f for i, f in enumerate(faults) if pc.any(table[f"fault_{i}"]).as_py()]
        )
        counts = _dense(table, hierarchy.size(hierarchy.leaf_level), len(cells))
        if counts is None:
            raise too_large(reader, f"greatest({', '.join(forms)})")
    return TrueCounts(counts)


def _negative_cell(reader: Reader, name: str, form: str, columns: Mapping[str, str]) -> Fault:
    return Fault(
        f"Cell {name!r} is negative in some rows of {reader.name}: "
        "what is subtracted must be a part of what is added.",
        f"{form} < 0",
        columns,
    )


def _expression(form: Form, values: Mapping[str, str]) -> str:
    if not form:
        return "1"
    return " ".join(f"{'+' if sign > 0 else '-'} {values[column]}" for column, sign in form.items())


def _dense(table: pa.Table, n_leaves: int, n_cells: int) -> NDArray[np.int64] | None:
    """Counts by leaf and cell; None where they are impossibly large."""
    counts = np.zeros((n_leaves, n_cells), dtype=np.int64)
    leaf = table["leaf"].to_numpy()
    for cell in range(n_cells):
        sums = table[f"cell_{cell}"]
        if sums.null_count or (len(sums) and pc.max(sums).as_py() > MOST):
            return None
        counts[leaf, cell] = sums.to_numpy()
    return counts if float(counts.sum(dtype=np.float64)) <= MOST else None
