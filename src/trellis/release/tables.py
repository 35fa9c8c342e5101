"""One table per level: geocode, level, attributes, count, std_error, lower, upper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from trellis.model.estimates import Estimates
from trellis.model.plan import Plan
from trellis.release.intervals import interval, interval_factor
from trellis.storage.cells import cell_columns
from trellis.storage.codes import level_codes
from trellis.storage.parquet import repeated, write_table

MOST_CSV_ROWS = 1_000_000
"""Larger tables are written as CSV only on request."""


def level_table(plan: Plan, estimates: Estimates, level: int) -> pa.Table:
    """All areas of a level; pass-through nodes of a ragged tree are left out."""
    hierarchy, name = estimates.hierarchy, plan.levels[level]
    shown = np.flatnonzero(~hierarchy.passes_through[level])
    counts = estimates.counts[level][shown]
    size, n_cells = counts.size, plan.schema.n_cells
    codes = level_codes(hierarchy, level).take(pa.array(np.repeat(shown, n_cells)))
    columns = {"geocode": codes, "level": repeated(name, size, pa.string())}
    columns |= cell_columns(plan.schema, shown.size)
    columns["count"] = pa.array(counts.ravel())
    if estimates.centre is None or estimates.std_error is None:
        columns["std_error"] = pa.nulls(size, pa.float64())
        columns["lower"] = columns["upper"] = pa.nulls(size, pa.int64())
    else:
        std_error = estimates.std_error[level][shown]
        ends = interval(counts, estimates.centre[level][shown], std_error, interval_factor(plan))
        columns["std_error"] = pa.array(std_error.ravel())
        columns["lower"], columns["upper"] = (pa.array(end.ravel()) for end in ends)
    return pa.table(columns)


def write_tables(folder: Path, plan: Plan, estimates: Estimates, csv: bool | None) -> None:
    for level, name in enumerate(plan.levels):
        write_level_table(folder, name, level_table(plan, estimates, level), csv)


def write_level_table(folder: Path, name: str, table: pa.Table, csv: bool | None) -> None:
    """Parquet always; CSV if asked for, and by default where the table is not too long."""
    write_table(folder / f"{name}.parquet", table)
    if csv or (csv is None and table.num_rows <= MOST_CSV_ROWS):
        pa_csv.write_csv(table, folder / f"{name}.csv")
