"""Tabulates confidential records into true counts of the leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.ingest.checks import (
    MOST,
    Fault,
    leaf_of,
    number_faults,
    refuse_found,
    too_large,
    unknown_area,
)
from trellis.ingest.columns import check_number, code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.ingest.terms import EACH, Below, Linear, Number, Rows
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
            check_number(reader, column)
        fields = {"area": code(reader, area, width), **{n: Number(c) for c, n in names.items()}}
        rows = Rows(fields, {"leaf": leaf_of("area", hierarchy)}, _forms(cells, names))
        faults = list(_faults(reader, cells, names))
        numbers = [f"cell_{i}" if form else EACH for i, form in enumerate(cells.values())]
        table, found = reader.sums(
            rows, ["leaf"], list(dict.fromkeys(numbers)), [fault.test for fault in faults]
        )
        refuse_found(reader, faults, found, rows)
        counts = _dense(table, hierarchy.size(hierarchy.leaf_level), numbers)
        if counts is None:
            raise too_large(reader, rows, *numbers)
    return TrueCounts(counts)


def _forms(cells: Mapping[str, Form], names: Mapping[str, str]) -> dict[str, Linear]:
    return {
        f"cell_{i}": Linear(tuple((names[column], sign) for column, sign in form.items()))
        for i, form in enumerate(cells.values())
        if form
    }


def _faults(reader: Reader, cells: Mapping[str, Form], names: Mapping[str, str]) -> Iterator[Fault]:
    yield unknown_area(reader)
    for column, name in names.items():
        yield from number_faults(reader, column, name)
    for i, (cell, form) in enumerate(cells.items()):
        if -1 in form.values():
            yield Fault(
                f"Cell {cell!r} is negative in some rows of {reader.name}: "
                "what is subtracted must be a part of what is added.",
                Below(f"cell_{i}", 0),
                {names[column]: column for column in form},
            )


def _dense(table: pa.Table, n_leaves: int, numbers: Sequence[str]) -> NDArray[np.int64] | None:
    """Counts by leaf and cell; None where they are impossibly large."""
    counts = np.zeros((n_leaves, len(numbers)), dtype=np.int64)
    leaf = table["leaf"].to_numpy()
    for cell, number in enumerate(numbers):
        sums = table[number]
        if sums.null_count or (len(sums) and pc.max(sums).as_py() > MOST):
            return None
        counts[leaf, cell] = sums.to_numpy()
    return counts if float(counts.sum(dtype=np.float64)) <= MOST else None
