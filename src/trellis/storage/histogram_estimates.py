"""Estimates of histograms on disk.

    estimates/level=county.parquet                         area, cell, count: occupied cells
    estimates/fit.json                                     distance to the best fit, tolerance
    estimates/margins/level=county/query=total.parquet     centre, class: areas x cells
    estimates/margins/level=county/query=total,errors.parquet    std_error: classes x cells

Areas and cells are positions in the hierarchy and the schema; areas of one class share their
standard errors. A method that publishes the centres has no other counts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.histogram_estimates import FIT_TOLERANCE, HistogramEstimates, Margin
from trellis.model.tables.queries import parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.atomic import read_json, write_json
from trellis.storage.parquet import read_table, refusing_damage, write_table


def write_histogram_estimates(folder: Path, estimates: HistogramEstimates) -> None:
    names = estimates.hierarchy.level_names if estimates.are_whole else ()
    for name, counts in zip(names, estimates.counts, strict=True):
        write_counts(folder / f"level={name}.parquet", counts)
    if estimates.are_whole:
        fit = {"distance": estimates.distance, "tolerance": FIT_TOLERANCE}
        write_json(folder / "fit.json", fit)
    for table, margin in estimates.margins.items():
        width = margin.centre.shape[1]
        columns = {"centre": margin.centre.ravel(), "class": np.repeat(margin.class_of, width)}
        write_table(_margins_file(folder, *table), pa.table(columns))
        errors = pa.table({"std_error": margin.std_error.ravel()})
        write_table(_margins_file(folder, *table, ",errors"), errors)


def read_histogram_estimates(folder: Path, plan: Plan, hierarchy: Hierarchy) -> HistogramEstimates:
    with refusing_damage(folder):
        counts = tuple(
            read_counts(folder / f"level={name}.parquet", size, plan.schema.n_cells)
            for name, size in zip(hierarchy.level_names, hierarchy.sizes, strict=True)
            if plan.method.whole
        )
        margins = {
            (level, query): _read_margin(folder, level, query, plan)
            for level, query in plan.design_as(HistogramDesign).tables
            if _margins_file(folder, level, query).exists()  # not by a method without variances
        }
        distance = read_distance(folder) if plan.method.whole else 0.0
        return HistogramEstimates(hierarchy, plan.schema, counts, margins, distance)


def read_distance(folder: Path) -> float:
    """How far a family may be from its best fit; 0 where nothing is fitted."""
    path = folder / "fit.json"
    return float(read_json(path)["distance"]) if path.exists() else 0.0


def _read_margin(folder: Path, level: str, query: str, plan: Plan) -> Margin:
    width = parse_query(plan.schema, query).n_cells
    table = read_table(_margins_file(folder, level, query))
    errors = read_table(_margins_file(folder, level, query, ",errors"))
    return Margin(
        table["centre"].to_numpy().reshape(-1, width),
        np.ascontiguousarray(table["class"].to_numpy()[::width]),
        errors["std_error"].to_numpy().reshape(-1, width),
    )


def write_counts(path: Path, counts: SparseCounts) -> None:
    """The occupied cells of one level."""
    area = np.repeat(np.arange(counts.n_areas, dtype=np.int32), np.diff(counts.start))
    columns = {"area": area, "cell": counts.cell, "count": counts.count}
    write_table(path, pa.table(columns))


def read_counts(path: Path, n_areas: int, n_cells: int) -> SparseCounts:
    table = read_table(path)
    start = np.searchsorted(table["area"].to_numpy(), np.arange(n_areas + 1)).astype(np.int64)
    return SparseCounts(n_cells, start, table["cell"].to_numpy(), table["count"].to_numpy())


def _margins_file(folder: Path, level: str, query: str, ending: str = "") -> Path:
    name = query.replace(" * ", ",") + ending
    return folder / "margins" / f"level={level}" / f"query={name}.parquet"
