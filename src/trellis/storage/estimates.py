"""Estimates as Parquet: one file per level in the order of the hierarchy, cells fastest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.estimates import Estimates
from trellis.model.hierarchy import Hierarchy
from trellis.model.schema import Schema
from trellis.storage.parquet import read_table, refusing_damage, write_table


def write_estimates(folder: Path, estimates: Estimates) -> None:
    for level, name in enumerate(estimates.hierarchy.level_names):
        columns = {"count": estimates.counts[level].ravel()}
        if estimates.centre is not None and estimates.std_error is not None:
            columns["centre"] = estimates.centre[level].ravel()
            columns["std_error"] = estimates.std_error[level].ravel()
        write_table(_file(folder, name), pa.table(columns))


def read_estimates(
    folder: Path, hierarchy: Hierarchy, schema: Schema, *, adds_up: bool = True
) -> Estimates:
    tables = [read_table(_file(folder, name)) for name in hierarchy.level_names]

    def arrays(column: str) -> tuple[np.ndarray, ...]:
        return tuple(t[column].to_numpy().reshape(-1, schema.n_cells) for t in tables)

    with refusing_damage(folder):
        if tables[0].column_names == ["count"]:
            return Estimates(hierarchy, schema, arrays("count"), adds_up=adds_up)
        columns = map(arrays, ("count", "centre", "std_error"))
        return Estimates(hierarchy, schema, *columns, adds_up=adds_up)


def _file(folder: Path, level: str) -> Path:
    return folder / f"level={level}.parquet"
