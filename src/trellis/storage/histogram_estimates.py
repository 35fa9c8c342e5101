"""Estimates of histograms on disk.

    estimates/level=county.parquet                         area, cell, count: occupied cells
    estimates/margins/level=county/query=total.parquet     centre, std_error: areas x cells

Areas and cells are positions in the hierarchy and the schema.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.hierarchy import Hierarchy
from trellis.model.histogram_estimates import HistogramEstimates
from trellis.model.plan import Plan
from trellis.model.queries import parse_query
from trellis.model.sparse_counts import SparseCounts
from trellis.storage.parquet import read_table, refusing_damage, write_table


def write_histogram_estimates(folder: Path, estimates: HistogramEstimates) -> None:
    for name, counts in zip(estimates.hierarchy.level_names, estimates.counts, strict=True):
        area = np.repeat(np.arange(counts.n_areas, dtype=np.int32), np.diff(counts.start))
        columns = {"area": area, "cell": counts.cell, "count": counts.count}
        write_table(folder / f"level={name}.parquet", pa.table(columns))
    for table, centre in estimates.centre.items():
        std_error = np.broadcast_to(estimates.std_error[table], centre.shape)
        margins = {"centre": centre.ravel(), "std_error": std_error.ravel()}
        write_table(_margins_file(folder, *table), pa.table(margins))


def read_histogram_estimates(folder: Path, plan: Plan, hierarchy: Hierarchy) -> HistogramEstimates:
    with refusing_damage(folder):
        counts = tuple(
            _read_counts(folder / f"level={name}.parquet", size, plan.schema.n_cells)
            for name, size in zip(hierarchy.level_names, hierarchy.sizes, strict=True)
        )
        centre, std_error = {}, {}
        assert plan.histogram is not None
        for level, query in plan.histogram.tables:
            path = _margins_file(folder, level, query)
            if not path.exists():  # a method without variances
                continue
            margins, width = read_table(path), parse_query(plan.schema, query).n_cells
            centre[level, query] = margins["centre"].to_numpy().reshape(-1, width)
            std_error[level, query] = margins["std_error"].to_numpy().reshape(-1, width)
        return HistogramEstimates(hierarchy, plan.schema, counts, centre, std_error)


def _read_counts(path: Path, n_areas: int, n_cells: int) -> SparseCounts:
    table = read_table(path)
    start = np.searchsorted(table["area"].to_numpy(), np.arange(n_areas + 1)).astype(np.int64)
    return SparseCounts(n_cells, start, table["cell"].to_numpy(), table["count"].to_numpy())


def _margins_file(folder: Path, level: str, query: str) -> Path:
    name = query.replace(" * ", ",")
    return folder / "margins" / f"level={level}" / f"query={name}.parquet"
