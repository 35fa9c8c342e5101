"""Estimates as Parquet: one file per level in the order of the hierarchy, cells fastest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.results.area_estimates import AreaEstimates
from trellis.model.results.estimates import Estimates
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
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


def write_area_estimates(folder: Path, areas: Sequence[AreaEstimates]) -> None:
    """One file per category of areas of interest, next to those of the levels."""
    for estimates in areas:
        columns = {"count": estimates.counts.ravel()}
        if estimates.centre is not None and estimates.std_error is not None:
            columns["centre"] = estimates.centre.ravel()
            columns["std_error"] = estimates.std_error.ravel()
        write_table(_area_file(folder, estimates.category.name), pa.table(columns))


def read_area_estimates(
    folder: Path, categories: Sequence[Category], schema: Schema
) -> list[AreaEstimates]:
    found = []
    for category in categories:
        path = _area_file(folder, category.name)
        table = read_table(path)
        with refusing_damage(path):
            arrays = [table[name].to_numpy().reshape(-1, schema.n_cells)
                      for name in table.column_names]  # fmt: skip
            found.append(AreaEstimates(category, *arrays))
    return found


def _area_file(folder: Path, name: str) -> Path:
    return folder / "areas" / f"{name}.parquet"


def _file(folder: Path, level: str) -> Path:
    return folder / f"level={level}.parquet"
