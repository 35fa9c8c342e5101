"""Measured histograms as a Parquet data set, partitioned by level and query.

    measurements/level=county/query=hispanic,cenrace/part-0.parquet
        geocode, hispanic, cenrace, value, variance

One row per area and cell of the query, areas in the order of the hierarchy, cells fastest; the
columns of the cell bear the names of the query's factors. Exact totals are in
`query=total,exact`. All row groups but the last hold `rows_per_group` rows, so that the values of
a run of areas are read without the rest. Pass-through nodes of a ragged tree are in the files.

Where unused rows are left out, the whole counts that decide which rows these are lie next to them:

    measurements/_counts/level=county.parquet       area, cell, count: occupied cells

Readers of data sets pass over names that begin with an underscore.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.measured_rows import EveryRow, MeasuredRows, UsedRows
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes
from trellis.storage.histogram_estimates import read_counts
from trellis.storage.parquet import read_table, refusing_damage

ROWS_PER_GROUP = 1 << 20
"""Values that are written and read at once."""

GROUPS_PER_PART = 16
"""Row groups in a file; parts are written side by side."""

_KEPT_GROUPS = 32
"""Row groups that a reader keeps, for runs that share one."""

_NOTHING = np.empty(0, dtype=np.int64)


def query_folder(folder: Path, planned: PlannedQuery) -> Path:
    """Where a query's parts are; stars and blanks would be a nuisance in file names."""
    name = planned.query.replace(" * ", ",")
    exact = ",exact" if planned.noise is None else ""
    return folder / f"level={planned.level}" / f"query={name}{exact}"


def part_file(folder: Path, planned: PlannedQuery, part: int) -> Path:
    return query_folder(folder, planned) / f"part-{part}.parquet"


def counts_file(folder: Path, level: str) -> Path:
    """The path of the whole counts of a level that decided what is measured below it."""
    return folder / "_counts" / f"level={level}.parquet"


def rows_per_group(n_cells: int) -> int:
    """As many as whole areas have, if all rows are there."""
    return max(1, ROWS_PER_GROUP // n_cells) * n_cells


def part_bounds(n_rows: int, n_cells: int) -> list[tuple[int, int]]:
    """The rows, first and last + 1, of each part; there is at least one."""
    return _runs(0, n_rows, rows_per_group(n_cells) * GROUPS_PER_PART) or [(0, 0)]


def group_bounds(first: int, last: int, n_cells: int) -> list[tuple[int, int]]:
    """The rows of each row group of a part."""
    return _runs(first, last, rows_per_group(n_cells))


def _runs(first: int, last: int, step: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + step, last)) for begin in range(first, last, step)]


def measured_rows(
    folder: Path, plan: Plan, hierarchy: Hierarchy, planned: PlannedQuery
) -> MeasuredRows:
    """The rows of a query that are measured: all, unless counts of the level above decide."""
    level = hierarchy.index(planned.level)
    query = parse_query(plan.schema, planned.query)
    above = None
    if plan.design_as(HistogramDesign).skips_unused and planned.noise is not None and level:
        above = decisive_counts(folder, plan, hierarchy, level - 1)
    if above is None:
        return EveryRow(hierarchy.size(level), query.n_cells)
    return UsedRows.below(above, hierarchy.child_start[level - 1], query.cell_of, query.n_cells)


def decisive_counts(
    folder: Path, plan: Plan, hierarchy: Hierarchy, level: int
) -> SparseCounts | None:
    """Whole counts of a level that decided what was measured below it; None if none did."""
    path = counts_file(folder, hierarchy.level_names[level])
    if not path.exists():
        return None
    with refusing_damage(path):
        return read_counts(path, hierarchy.size(level), plan.schema.n_cells)


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
        area = np.repeat(np.arange(first, first + n_areas), n_cells)
        names = [column.slice(0, values.size) for column in self._names]
        self._write(area, names, values.reshape(-1))

    def write_rows(
        self, area: NDArray[np.int64], cell: NDArray[np.int64], values: NDArray[np.int64]
    ) -> None:
        """Single rows in ascending order, one row group at most."""
        self._write(area, _factor_columns(self._query, cell), values)

    def _write(
        self, area: NDArray[np.int64], names: list[pa.Array], values: NDArray[np.int64]
    ) -> None:
        first, last = int(area[0]), int(area[-1]) + 1
        codes = self._codes.slice(first, last - first)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array((area - first).astype(np.int32)), codes),
            *names,
            pa.array(values),
            pa.array(np.full(values.size, self._variance)),
        ]
        table = pa.Table.from_arrays(columns, schema=measurement_schema(self._query))
        self._file.write_table(table, row_group_size=values.size)


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
        self.rows = measured_rows(folder, plan, hierarchy, planned)
        self._codes = level_codes(hierarchy, planned.level)
        n_cells = self.query.n_cells
        n_areas = min(rows_per_group(n_cells) // n_cells, hierarchy.size(planned.level))
        every = isinstance(self.rows, EveryRow)
        self._names = factor_columns(self.query, n_areas) if every else []
        query_folder(folder, planned).mkdir(parents=True, exist_ok=True)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The rows of each part."""
        return part_bounds(self.rows.n_rows, self.query.n_cells)

    @contextmanager
    def part(self, number: int) -> Iterator[PartWriter]:
        path = part_file(self._folder, self._planned, number)
        schema = measurement_schema(self.query)
        with pq.ParquetWriter(path, schema, compression="zstd", write_statistics=False) as file:
            yield PartWriter(file, self._names, self.query, self._codes, self._planned.variance)


def factor_columns(query: Query, n_areas: int) -> list[pa.Array]:
    """One column per factor of a query, for areas x cells with the cells fastest."""
    return _factor_columns(query, np.tile(np.arange(query.n_cells), n_areas))


def _factor_columns(query: Query, cell: NDArray[np.int64]) -> list[pa.Array]:
    positions = np.unravel_index(cell, query.shape) if query.factors else ()
    return [
        pa.DictionaryArray.from_arrays(
            pa.array(position.astype(np.int32)), pa.array(factor.labels, pa.string())
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
    """Reads the measurements of a run of areas, and little else; several threads may read.

    `unfinished`: levels are still being measured, from the root down. A level is read after it.
    """

    def __init__(
        self, folder: Path, plan: Plan, hierarchy: Hierarchy, *, unfinished: bool = False
    ) -> None:
        self._folder, self.plan, self.hierarchy = folder, plan, hierarchy
        # An exact answer comes first in the plan and stands for a noisy one of the same query.
        self._planned = {(q.level, q.query): q for q in reversed(plan.queries)}
        self._kept: OrderedDict[tuple[str, str, int], NDArray[np.int64]] = OrderedDict()
        self._rows: dict[tuple[str, str], MeasuredRows] = {}
        self._lock = threading.Lock()
        for planned in () if unfinished else plan.queries:
            self._check_parts(planned)

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes it goes as its path, without what was read; parts were checked."""
        return partial(type(self), unfinished=True), (self._folder, self.plan, self.hierarchy)

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    @property
    def measured(self) -> list[dict[str, float]]:
        """For each level, root first, the variance of each query; 0 where it is exact."""
        return [
            {
                q.query: q.assumed_variance
                for (level, _), q in self._planned.items()
                if level == name
            }
            for name in self.plan.levels
        ]

    def read(self, level: int | str, query: str, first: int, last: int) -> NDArray[np.int64]:
        """Values of the areas `first : last` of a level: areas x cells of the query."""
        name = self.plan.levels[level] if isinstance(level, int) else level
        planned = self._planned[name, query]
        rows = self._rows_of(planned)
        begin, end = rows.of_areas(first, last)
        step = rows_per_group(rows.n_cells)
        pieces = [
            self._group(planned, rows, group)[max(begin - group * step, 0) : end - group * step]
            for group in range(begin // step, -(-end // step))
        ]
        values = pieces[0] if len(pieces) == 1 else np.concatenate([*pieces, _NOTHING])
        return rows.written_out(first, last, values)

    def decisive_counts(self) -> list[SparseCounts]:
        """Whole counts of the levels that decided what was measured below them, root first."""
        found: list[SparseCounts] = []
        for level in range(
            self.hierarchy.n_levels - 1 if self.plan.design_as(HistogramDesign).skips_unused else 0
        ):
            counts = decisive_counts(self._folder, self.plan, self.hierarchy, level)
            if counts is None:
                break
            found.append(counts)
        return found

    def _rows_of(self, planned: PlannedQuery) -> MeasuredRows:
        key = planned.level, planned.query
        with self._lock:
            if key not in self._rows:
                self._rows[key] = measured_rows(self._folder, self.plan, self.hierarchy, planned)
            return self._rows[key]

    def _group(self, planned: PlannedQuery, rows: MeasuredRows, group: int) -> NDArray[np.int64]:
        key = (planned.level, planned.query, group)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        part, inside = divmod(group, GROUPS_PER_PART)
        path = part_file(self._folder, planned, part)
        with refusing_damage(path), pq.ParquetFile(path) as file:
            values = file.read_row_group(inside, columns=["value"])["value"].to_numpy()
        step = rows_per_group(rows.n_cells)
        if values.dtype != np.int64 or values.size != min(step, rows.n_rows - group * step):
            raise RunFolderError(f"{path} does not fit the plan. Start in a new run folder.")
        with self._lock:
            self._kept[key] = values
            while len(self._kept) > _KEPT_GROUPS:
                self._kept.popitem(last=False)
        return values

    def _check_parts(self, planned: PlannedQuery) -> None:
        rows = self._rows_of(planned)
        for part in range(len(part_bounds(rows.n_rows, rows.n_cells))):
            path = part_file(self._folder, planned, part)
            if not path.is_file():
                raise RunFolderError(f"{path} is missing.")
