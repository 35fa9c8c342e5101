"""Columns and tables of histograms and flows, written by a forger who knows how they fit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forging import fit_manifest
from trellis.verify.files.histogram_files import centres, kept, marginal, standard_errors, tables
from trellis.verify.files.run_files import RunFiles


def write_column(path: Path, column: str, values: np.ndarray) -> None:
    table = pq.ParquetFile(path).read()
    field = table.schema.field(column)
    new = pa.array(values, field.type)
    pq.write_table(table.set_column(table.column_names.index(column), field, new), path)


def read_column(path: Path, column: str) -> np.ndarray:
    return pq.ParquetFile(path).read([column])[column].to_numpy(zero_copy_only=False).copy()


def write_counts(run: Path, level: str, dense: np.ndarray) -> None:
    """Whole counts of a level, areas x cells."""
    path = run / f"estimates/level={level}.parquet"
    area, cell = np.nonzero(dense)
    fields = pq.read_schema(path)
    values = {"area": area, "cell": cell, "count": dense[area, cell]}
    columns = [pa.array(values[f.name], f.type) for f in fields]
    pq.write_table(pa.table(columns, schema=fields), path)


def dense_counts(run: Path, level: str) -> np.ndarray:
    files = RunFiles(run)
    at = next(entry for entry in files.levels if entry.name == level)
    found, out = kept(files, at), np.zeros((len(at), files.n_cells), dtype=np.int64)
    out[found.area, found.cell] = found.count
    return out


def remake_tables(run: Path) -> None:
    """Tables of a release without exact facts, from its whole counts and margins."""
    files = RunFiles(run)
    confidence = float(Fraction(files.plan["confidence"]))
    factor = NormalDist().inv_cdf((1 + confidence) / 2)
    for level, name, stem in tables(files):
        query, path = marginal(files.plan, name), run / f"{stem}.parquet"
        count = kept(files, level).marginal(query, len(level))[level.shown].ravel()
        centre = centres(files, level, query, name)[level.shown].ravel()
        error = standard_errors(files, level, query, name)[level.shown].ravel()
        reach = factor * error + 0.5
        lower = np.minimum(np.maximum(np.ceil(centre - reach), 0), count)
        upper = np.maximum(np.maximum(np.floor(centre + reach), 0), count)
        for column, values in (
            ("count", count), ("std_error", error), ("lower", lower), ("upper", upper),
        ):  # fmt: skip
            write_column(path, column, values)
    fit_manifest(run)
