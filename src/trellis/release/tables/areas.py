"""One table per category of areas of interest, with the columns of a level's table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.plans.plan import Plan
from trellis.model.results.area_estimates import AreaEstimates
from trellis.model.results.exact_totals import ExactTotals, category_range
from trellis.release.tables.counts import count_columns, write_level_table
from trellis.storage.cells import cell_columns
from trellis.storage.codes import codes_to_arrow
from trellis.storage.parquet import repeated


def area_table(plan: Plan, estimates: AreaEstimates, facts: ExactTotals | None) -> pa.Table:
    """All entities, by code; `level` holds the name of the category."""
    category, counts = estimates.category, estimates.counts
    size, n_cells = counts.size, plan.schema.n_cells
    rows = pa.array(np.repeat(np.arange(category.size), n_cells))
    columns = {
        "geocode": codes_to_arrow(category.codes).take(rows),
        "level": repeated(category.name, size, pa.string()),
        **cell_columns(plan.schema, category.size),
    }
    margins = None
    if estimates.centre is not None and estimates.std_error is not None:
        margins = estimates.centre, estimates.std_error, category_range(facts, category)
    return pa.table(columns | count_columns(plan, counts, margins))


def write_area_tables(
    folder: Path,
    plan: Plan,
    areas: Sequence[AreaEstimates],
    facts: ExactTotals | None,
    csv: bool | None,
) -> None:
    for estimates in areas:
        table = area_table(plan, estimates, facts)
        write_level_table(folder / "areas", estimates.category.name, table, csv)
