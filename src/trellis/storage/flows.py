"""Flows as Parquet: one file per level, a row per node in the order of the tree.

    measurements/level=state-to-county/query=pairs.parquet     what was measured, zero or not
    estimates/level=state-to-county.parquet                    flows that are not zero

Nodes are given by positions in the hierarchies of origins and destinations (`hierarchy.parquet`,
`destinations.parquet`). The children of every measured family are complete and contiguous.
`expanded` tells below which nodes the next level was measured; it was decided from noisy values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import FlowLevel, Nodes
from trellis.storage.measurements import measurement_file
from trellis.storage.parquet import read_table, refusing_damage, repeated

Ints = NDArray[np.int64]
_ROWS = 1 << 20
_NODE = ("origin", "destination", "cell")


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """Some rows of a level: noisy values, and whether the children were measured too."""

    values: Ints
    expanded: NDArray[np.bool_]


class TableWriter:
    """Rows into one Parquet file, run by run; the form is that of the first run."""

    def __init__(self, path: Path) -> None:
        self._path, self._writer = path, None
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table, row_group_size=_ROWS)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def table_writer(path: Path) -> Iterator[TableWriter]:
    writer = TableWriter(path)
    try:
        yield writer
    finally:
        writer.close()


def level_file(folder: Path, plan: Plan, level: int) -> Path:
    """Where the measurements of a level are."""
    return measurement_file(folder, plan.queries[level])


def measured_table(
    nodes: Nodes, values: Ints, variance: float, expanded: NDArray[np.bool_]
) -> pa.Table:
    return pa.table(
        {
            **node_columns(nodes),
            "value": values,
            "variance": repeated(variance, values.size, pa.float64()),
            "expanded": expanded,
        }
    )


def node_columns(nodes: Nodes) -> dict[str, NDArray]:
    columns = {"origin": nodes.origin, "destination": nodes.destination}
    return columns if nodes.cell is None else {**columns, "cell": nodes.cell}


class MeasuredLevel:
    """The measurements of one level, read in order in pieces of any size."""

    def __init__(self, folder: Path, plan: Plan, level: int) -> None:
        self._path = level_file(folder, plan, level)
        self._pieces = self._read()
        self._rest: list[MeasuredRows] = []
        self._n_rest = 0

    def _read(self) -> Iterator[MeasuredRows]:
        try:
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(_ROWS, columns=["value", "expanded"]):
                    with refusing_damage(self._path):
                        values = batch["value"].to_numpy()
                        expanded = batch["expanded"].to_numpy(zero_copy_only=False)
                        if values.dtype != np.int64 or expanded.dtype != np.bool_:
                            raise ValueError("a value is missing")
                        yield MeasuredRows(values, expanded)
        except FileNotFoundError:
            raise RunFolderError(f"{self._path} is missing.") from None
        except (OSError, KeyError, pa.ArrowException):
            raise RunFolderError(f"{self._path} is damaged.") from None

    def take(self, n: int) -> MeasuredRows:
        """The next `n` rows."""
        while self._n_rest < n:
            piece = next(self._pieces, None)
            if piece is None:
                raise RunFolderError(f"{self._path} has fewer rows than the level above asks for.")
            self._rest.append(piece)
            self._n_rest += piece.values.size
        values = np.concatenate([p.values for p in self._rest]) if self._rest else np.empty(0, int)
        expanded = np.concatenate([p.expanded for p in self._rest]) if self._rest else values > 0
        self._rest, self._n_rest = [MeasuredRows(values[n:], expanded[n:])], self._n_rest - n
        return MeasuredRows(values[:n], expanded[:n])

    def finish(self) -> None:
        """All rows must have been taken."""
        if self._n_rest or next(self._pieces, None) is not None:
            raise RunFolderError(f"{self._path} has more rows than the level above asks for.")


def estimates_file(folder: Path, level: str) -> Path:
    return folder / f"level={level}.parquet"


def estimate_table(level: FlowLevel) -> pa.Table:
    return pa.table(
        {
            **node_columns(level.nodes),
            "count": level.counts,
            "centre": level.centre,
            "std_error": level.std_error,
        }
    )


def read_flow_level(folder: Path, level: str) -> FlowLevel:
    path = estimates_file(folder, level)
    table = read_table(path)
    with refusing_damage(path):
        columns = {name: table[name].to_numpy() for name in table.column_names}
        nodes = Nodes(*(columns[name] for name in _NODE if name in columns))
        return FlowLevel(nodes, columns["count"], columns["centre"], columns["std_error"])
