"""Measured histograms as a Parquet data set, partitioned by level and query.

    measurements/level=county/query=hispanic,cenrace/part-0.parquet
        geocode, hispanic, cenrace, value, variance

One row per area and cell of the query, areas in the order of the hierarchy, cells fastest; the
columns of the cell bear the names of the query's factors. Exact totals are in
`query=total,exact`. A row group holds `areas_per_group` areas, so that the values of a run of
areas are read without the rest. Pass-through nodes of a ragged tree are in the files.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan, PlannedQuery
from trellis.model.queries import Query, parse_query
from trellis.model.schema import Schema
from trellis.storage.codes import level_codes
from trellis.storage.parquet import read_table, refusing_damage

ROWS_PER_GROUP = 1 << 20
"""Values that are written and read at once."""

GROUPS_PER_PART = 16
"""Row groups in a file; parts are written side by side."""

_KEPT_GROUPS = 32
"""Row groups that a reader keeps, for runs that share one."""


def query_folder(folder: Path, planned: PlannedQuery) -> Path:
    """Where a query's parts are; stars and blanks would be a nuisance in file names."""
    name = planned.query.replace(" * ", ",")
    exact = ",exact" if planned.noise is None else ""
    return folder / f"level={planned.level}" / f"query={name}{exact}"


def part_file(folder: Path, planned: PlannedQuery, part: int) -> Path:
    return query_folder(folder, planned) / f"part-{part}.parquet"


def areas_per_group(n_cells: int) -> int:
    return max(1, ROWS_PER_GROUP // n_cells)


def part_bounds(n_areas: int, n_cells: int) -> list[tuple[int, int]]:
    """The areas, first and last + 1, of each part."""
    step = areas_per_group(n_cells) * GROUPS_PER_PART
    return [(first, min(first + step, n_areas)) for first in range(0, n_areas, step)]


# -- writing --------------------------------------------------------------------------------------


class PartWriter:
    """Writes the row groups of one part in order."""

    def __init__(self, file: pq.ParquetWriter, names: list[pa.Array], query: Query,
                 codes: pa.Array, variance: float) -> None:  # fmt: skip
        self._file, self._names, self._query = file, names, query
        self._codes, self._variance = codes, variance

    def write(self, first: int, values: NDArray[np.int64]) -> None:
        """Areas from `first` on: areas x cells of the query, one row group at most."""
        n_areas, n_cells = values.shape
        codes = self._codes.slice(first, n_areas)
        area = np.repeat(np.arange(n_areas, dtype=np.int32), n_cells)
        size = values.size
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(area), codes),
            *(column.slice(0, size) for column in self._names),
            pa.array(values.reshape(-1)),
            pa.array(np.full(size, self._variance)),
        ]
        table = pa.Table.from_arrays(columns, schema=measurement_schema(self._query))
        self._file.write_table(table, row_group_size=size)


def measurement_schema(query: Query) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    factors = [(factor.name, text) for factor in query.factors]
    return pa.schema(
        [("geocode", text), *factors, ("value", pa.int64()), ("variance", pa.float64())]
    )


class MeasurementWriter:
    """Opens the parts of one planned query; its parts may be written by several threads."""

    def __init__(
        self, folder: Path, plan: Plan, hierarchy: Hierarchy, planned: PlannedQuery
    ) -> None:
        self._folder, self._planned = folder, planned
        self.query = parse_query(plan.schema, planned.query)
        self._codes = level_codes(hierarchy, planned.level)
        n_areas = min(areas_per_group(self.query.n_cells), hierarchy.size(planned.level))
        self._names = factor_columns(self.query, n_areas)
        query_folder(folder, planned).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def part(self, number: int) -> Iterator[PartWriter]:
        path = part_file(self._folder, self._planned, number)
        schema = measurement_schema(self.query)
        with pq.ParquetWriter(path, schema, compression="zstd", write_statistics=False) as file:
            yield PartWriter(file, self._names, self.query, self._codes, self._planned.variance)


def factor_columns(query: Query, n_areas: int) -> list[pa.Array]:
    """One column per factor of a query, for areas x cells with the cells fastest."""
    positions = np.unravel_index(np.arange(query.n_cells), query.shape) if query.factors else ()
    return [
        pa.DictionaryArray.from_arrays(
            pa.array(np.tile(position.astype(np.int32), n_areas)),
            pa.array(factor.labels, pa.string()),
        )
        for factor, position in zip(query.factors, positions, strict=True)
    ]


# -- reading --------------------------------------------------------------------------------------


def load_measurement(folder: Path, planned: PlannedQuery) -> pa.Table:
    """All of one query: geocode, the factors of the query, value, variance."""
    parts = sorted(query_folder(folder, planned).glob("part-*.parquet"), key=_number)
    if not parts:
        raise RunFolderError(f"{query_folder(folder, planned)} is missing.")
    return pa.concat_tables([read_table(part) for part in parts])


def _number(part: Path) -> int:
    return int(part.stem.removeprefix("part-"))


class MeasuredHistograms:
    """Reads the measurements of a run of areas, and little else; several threads may read."""

    def __init__(self, folder: Path, plan: Plan, hierarchy: Hierarchy) -> None:
        self._folder, self.plan, self.hierarchy = folder, plan, hierarchy
        # An exact answer comes first in the plan and stands for a noisy one of the same query.
        self._planned = {(q.level, q.query): q for q in reversed(plan.queries)}
        self._kept: OrderedDict[tuple[str, str, int], NDArray[np.int64]] = OrderedDict()
        self._lock = threading.Lock()
        for planned in plan.queries:
            self._check_parts(planned)

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    @property
    def measured(self) -> list[dict[str, float]]:
        """For each level, root first, the variance of each query; 0 where it is exact."""
        return [
            {q.query: q.variance for (level, _), q in self._planned.items() if level == name}
            for name in self.plan.levels
        ]

    def read(self, level: int | str, query: str, first: int, last: int) -> NDArray[np.int64]:
        """Values of the areas `first : last` of a level: areas x cells of the query."""
        name = self.plan.levels[level] if isinstance(level, int) else level
        planned = self._planned[name, query]
        n_cells = self.plan.width(query)
        step = areas_per_group(n_cells)
        pieces = []
        for group in range(first // step, -(-last // step)):
            values = self._group(planned, group, n_cells)
            begin = group * step
            pieces.append(values[max(first - begin, 0) : last - begin])
        return (
            pieces[0]
            if len(pieces) == 1
            else np.concatenate(pieces or [np.empty((0, n_cells), np.int64)])
        )

    def _group(self, planned: PlannedQuery, group: int, n_cells: int) -> NDArray[np.int64]:
        key = (planned.level, planned.query, group)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        part, inside = divmod(group, GROUPS_PER_PART)
        path = part_file(self._folder, planned, part)
        with refusing_damage(path), pq.ParquetFile(path) as file:
            values = file.read_row_group(inside, columns=["value"])["value"].to_numpy()
        step = areas_per_group(n_cells)
        n_areas = min(step, self.hierarchy.size(planned.level) - group * step)
        if values.dtype != np.int64 or values.size != n_areas * n_cells:
            raise RunFolderError(f"{path} does not fit the plan. Start in a new run folder.")
        values = values.reshape(n_areas, n_cells)
        with self._lock:
            self._kept[key] = values
            while len(self._kept) > _KEPT_GROUPS:
                self._kept.popitem(last=False)
        return values

    def _check_parts(self, planned: PlannedQuery) -> None:
        n_parts = len(
            part_bounds(self.hierarchy.size(planned.level), self.plan.width(planned.query))
        )
        for part in range(n_parts):
            path = part_file(self._folder, planned, part)
            if not path.is_file():
                raise RunFolderError(f"{path} is missing.")
