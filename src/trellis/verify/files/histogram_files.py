"""What a release of histograms keeps in its run folder, read without the code that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis.verify.files.run_files import Level, RunFiles
from trellis.verify.files.safe_files import Unreadable


@dataclass(frozen=True, slots=True)
class Marginal:
    """A query by its name: labels of its factors, and the cell of each cell of the schema."""

    names: list[str]
    labels: list[list[str]]
    cell_of: np.ndarray

    @property
    def width(self) -> int:
        return prod(map(len, self.labels))

    def positions(self) -> list[np.ndarray]:
        """Which label of each factor a cell of the query has, last factor fastest."""
        if not self.labels:
            return []
        return list(np.unravel_index(np.arange(self.width), [len(x) for x in self.labels]))


def marginal(plan: dict[str, Any], query: str) -> Marginal:
    """From the schema and recodes of plan.json."""
    schema, recodes = plan["schema"], plan.get("recodes", {})
    attributes = list(schema)
    names = {"total": [], "detailed": attributes}.get(query, query.split(" * "))
    shape = [len(categories) for categories in schema.values()]
    position = np.unravel_index(np.arange(prod(shape)), shape)
    labels, cell_of = [], np.zeros(prod(shape), dtype=np.int64)
    for name in names:
        if name in schema:
            found, group = schema[name], list(range(len(schema[name])))
            attribute = name
        else:
            attribute, groups = recodes[name]["attribute"], recodes[name]["groups"]
            found = list(groups)
            group = [
                next(i for i, members in enumerate(groups.values()) if category in members)
                for category in schema[attribute]
            ]
        labels.append(found)
        at = position[attributes.index(attribute)]
        cell_of = cell_of * len(found) + np.array(group)[at]
    return Marginal(names, labels, cell_of)


@dataclass(frozen=True, slots=True)
class Kept:
    """Estimates of one level: positions and counts of the cells that hold anyone."""

    area: np.ndarray
    cell: np.ndarray
    count: np.ndarray

    def key(self, n_cells: int) -> np.ndarray:
        return self.area.astype(np.int64) * n_cells + self.cell

    def marginal(self, query: Marginal, n_areas: int) -> np.ndarray:
        """Areas x cells of the query."""
        place = self.area.astype(np.int64) * query.width + query.cell_of[self.cell]
        total = np.zeros(n_areas * query.width, dtype=np.int64)
        np.add.at(total, place, self.count)
        return total.reshape(n_areas, query.width)


def kept(run: RunFiles, level: Level, folder: str = "estimates") -> Kept:
    name = f"{folder}/level={level.name}.parquet"
    table = run.table(name)
    area, cell, count = (table[column].to_numpy() for column in ("area", "cell", "count"))
    in_range = not area.size or (
        area.min() >= 0 and area.max() < len(level)
        and cell.min() >= 0 and cell.max() < run.n_cells
    )  # fmt: skip
    if not in_range or not np.issubdtype(count.dtype, np.integer):
        raise Unreadable(f"{name} holds something else than areas, cells and whole counts")
    return Kept(area, cell, count)


def centres(run: RunFiles, level: Level, query: Marginal, name: str) -> np.ndarray:
    """The best linear unbiased estimates of a table: all nodes of the level x cells."""
    place = _margins(level, name)
    values = run.table(f"{place}.parquet", ["centre"])["centre"].to_numpy()
    if values.size != len(level) * query.width or not np.isfinite(values).all():
        raise Unreadable(f"{place}.parquet does not hold an estimate of each cell of each area")
    return values.reshape(len(level), query.width)


def standard_errors(run: RunFiles, level: Level, query: Marginal, name: str) -> np.ndarray:
    """Their standard errors: all nodes of the level x cells."""
    place = _margins(level, name)
    by_class = run.table(f"{place},errors.parquet")["std_error"].to_numpy()
    class_of = run.table(f"{place}.parquet", ["class"])["class"].to_numpy()
    class_of = class_of.reshape(-1, query.width)
    if (class_of != class_of[:, :1]).any():
        raise Unreadable(f"{place}.parquet puts the cells of one area into several classes")
    return by_class.reshape(-1, query.width)[class_of[:, 0]]


def _margins(level: Level, name: str) -> str:
    return f"estimates/margins/level={level.name}/query={name.replace(' * ', ',')}"


def tables(run: RunFiles) -> Iterator[tuple[Level, str, str]]:
    """Published tables: level, query, and the name of the file without its ending."""
    levels = {level.name: level for level in run.levels}
    for level, query in run.plan["histogram"]["tables"]:
        yield levels[level], query, f"release/{level}/{query.replace(' * ', ',')}"


def row_groups(run: RunFiles, name: str) -> Iterator[pa.Table]:
    """A file piece by piece, with text as dictionaries."""
    run.require_form(name)
    try:
        path = run.path / name
        text = [f.name for f in pq.read_schema(path) if pa.types.is_dictionary(f.type)]
        with pq.ParquetFile(path, read_dictionary=text) as file:
            for index in range(file.num_row_groups):
                yield file.read_row_group(index)
    except (OSError, pa.ArrowException):
        raise Unreadable(f"{name} is missing or damaged") from None


def names_in_order(column: pa.ChunkedArray, labels: list[str], expected: np.ndarray) -> bool:
    """Whether a column of text is `labels` at the positions `expected`, without writing it out."""
    offset = 0
    place = {label: i for i, label in enumerate(labels)}
    for chunk in column.chunks:
        if chunk.null_count:
            return False
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        used = [place.get(value, -1) for value in chunk.dictionary.to_pylist()]
        here = np.array(used, dtype=np.int64)[chunk.indices.to_numpy()]
        if not np.array_equal(here, expected[offset : offset + here.size]):
            return False
        offset += here.size
    return offset == expected.size
