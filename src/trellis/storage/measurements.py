"""Measurements as Parquet: one file per level and query, one row per area and cell.

    measurements/level=county/query=total.parquet    geocode, <attributes>, value, variance

On a spine there is one file for each share of a level: level=tract/class=2/query=total.parquet.
Rows are in the order of the hierarchy, cells fastest. Pass-through nodes of a ragged tree
are measured like others and are in the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.errors import RunFolderError
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.results.measurements import Measurements
from trellis.model.tables.queries import TOTAL
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.storage.cells import cell_columns
from trellis.storage.codes import level_codes
from trellis.storage.parquet import read_table, refusing_damage, repeated, write_table


def measurement_file(folder: Path, query: PlannedQuery) -> Path:
    place = folder / f"level={query.level}"
    if query.share_class is not None:
        place /= f"class={query.share_class}"
    return place / f"query={query.query}.parquet"


def write_measurements(folder: Path, measurements: Measurements) -> None:
    hierarchy, schema = measurements.hierarchy, measurements.plan.schema
    for query, values in zip(measurements.plan.queries, measurements.values, strict=True):
        codes = level_codes(hierarchy, query.level)
        if measurements.spine is not None and query.share_class is not None:
            codes = codes.take(pa.array(measurements.spine.rows(query.level, query.share_class)))
        n_areas, width = values.shape
        columns = {"geocode": codes.take(pa.array(np.repeat(np.arange(n_areas), width)))}
        if query.query != TOTAL:
            columns |= cell_columns(schema, n_areas, width)
        columns["value"] = pa.array(values.ravel())
        columns["variance"] = repeated(query.variance, values.size, pa.float64())
        write_table(measurement_file(folder, query), pa.table(columns))


def read_measurements(
    folder: Path, plan: Plan, hierarchy: Hierarchy, spine: Spine | None = None
) -> Measurements:
    """What was measured on the hierarchy or, if there is one, on the spine."""
    tree = hierarchy if spine is None else spine.hierarchy
    arrays = []
    for query in plan.queries:
        path = measurement_file(folder, query)
        with refusing_damage(path):
            values = read_table(path, ["value"])["value"].to_numpy()
        width = plan.width(query.query)
        if values.dtype != np.int64 or values.size != plan.n_nodes(query) * width:
            raise RunFolderError(f"{path} does not fit the plan. Start in a new run folder.")
        arrays.append(values.reshape(-1, width))
    return Measurements(plan, tree, tuple(arrays), spine)
