"""One table per level: geocode, level, attributes, count, std_error, lower, upper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from trellis.execution.progress import in_parts
from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates
from trellis.model.results.exact_totals import ExactTotals, level_range
from trellis.model.tables.carried_bounds import Range
from trellis.release.tables.intervals import interval, interval_factor
from trellis.storage.cells import cell_columns
from trellis.storage.codes import level_codes
from trellis.storage.parquet import repeated, write_table
from trellis.storage.spreadsheets import spreadsheet_safe

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

MOST_CSV_ROWS = 1_000_000
"""Larger tables are written as CSV only on request."""

CSV_DIGITS, CSV_DECIMALS = 4, 6
"""Significant digits of standard errors, and decimals of statistics, in CSV files."""

Margins = tuple[NDArray, NDArray, Range]
"""Centres, standard errors, and what the facts about the records allow."""


def level_table(
    plan: Plan, estimates: Estimates, facts: ExactTotals | None, level: int
) -> pa.Table:
    """All areas of a level; pass-through nodes of a ragged tree are left out."""
    hierarchy, name = estimates.hierarchy, plan.levels[level]
    shown = np.flatnonzero(~hierarchy.passes_through[level])
    counts = estimates.counts[level][shown]
    size, n_cells = counts.size, plan.schema.n_cells
    codes = level_codes(hierarchy, level).take(pa.array(np.repeat(shown, n_cells)))
    columns = {"geocode": codes, "level": repeated(name, size, pa.string())}
    columns |= cell_columns(plan.schema, shown.size)
    margins: Margins | None = None
    if estimates.centre is not None and estimates.std_error is not None:
        allowed = level_range(facts, level).rows(shown)
        margins = estimates.centre[level][shown], estimates.std_error[level][shown], allowed
    return pa.table(columns | count_columns(plan, counts, margins))


def count_columns(plan: Plan, counts: NDArray, margins: Margins | None) -> dict[str, pa.Array]:
    """Counts with their margins of error, which are empty without centres and standard errors."""
    columns = {"count": pa.array(counts.ravel())}
    if margins is None:
        empty = pa.nulls(counts.size, pa.int64())
        return columns | {
            "std_error": pa.nulls(counts.size, pa.float64()), "lower": empty, "upper": empty
        }  # fmt: skip
    centre, std_error, allowed = margins
    lower, upper = interval(counts, centre, std_error, interval_factor(plan), allowed)
    columns["std_error"] = pa.array(std_error.ravel())
    return columns | {"lower": pa.array(lower.ravel()), "upper": pa.array(upper.ravel())}


def write_tables(
    folder: Path, plan: Plan, estimates: Estimates, facts: ExactTotals | None, csv: bool | None
) -> None:
    levels = in_parts(enumerate(plan.levels), estimates.hierarchy.sizes)
    for level, name in levels:
        write_level_table(folder, name, level_table(plan, estimates, facts, level), csv)


def write_level_table(folder: Path, name: str, table: pa.Table, csv: bool | None) -> None:
    """Parquet always; CSV if asked for, and by default where the table is not too long."""
    write_table(folder / f"{name}.parquet", table)
    if csv or (csv is None and table.num_rows <= MOST_CSV_ROWS):
        pa_csv.write_csv(for_csv(table), folder / f"{name}.csv")


def for_csv(table: pa.Table) -> pa.Table:
    """A table as its CSV file has it: safe in spreadsheets, without digits that say nothing."""
    for at, column in enumerate(table.schema):
        if column.name == "std_error":
            digits = significant(table[column.name].to_numpy(), CSV_DIGITS)
            table = table.set_column(at, column.name, pa.array(digits, from_pandas=True))
        elif "statistic" in table.column_names and pa.types.is_floating(column.type):
            table = table.set_column(at, column.name, pc.round(table[column.name], CSV_DECIMALS))
    return spreadsheet_safe(table)


def significant(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Rounded to this many significant digits; as text, nothing else is kept."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([float(f"{value:.{digits}g}") for value in distinct.tolist()])[place]
