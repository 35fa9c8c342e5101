"""The files of a run, read without the code that wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from trellis.verify.files.inventory import strange
from trellis.verify.files.safe_files import Unreadable, read_json, read_yaml, walk

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one level: codes, parents on the level above, and which are only padding."""

    name: str
    geocodes: pa.Array
    parent: np.ndarray
    padding: np.ndarray

    def __len__(self) -> int:
        return len(self.geocodes)

    @property
    def codes(self) -> list[str]:
        return self.geocodes.to_pylist()

    @property
    def shown(self) -> np.ndarray:
        return np.flatnonzero(~self.padding)

    def lists(self, column: pa.ChunkedArray, nodes: np.ndarray, times: int) -> bool:
        """Whether a column holds the codes of these nodes in order, each so many times."""
        expected = self.geocodes.take(pa.array(np.repeat(nodes, times)))
        return column.combine_chunks().equals(expected)


def ancestors(levels: list[Level], below: int, top: int) -> np.ndarray:
    """For each node of level `below`, its ancestor on level `top`."""
    found = np.arange(len(levels[below]))
    for index in range(below, top, -1):
        found = levels[index].parent[found]
    return found


class RunFiles:
    """Reads each file once, when a check first asks for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sizes = dict(walk(path))
        self.notes: list[str] = []
        """What was checked on a sample, or could not be checked; lines for people."""
        self.is_reduced = False
        """Whether the folder itself says that checks do not fit it, as a forger could."""

    @cached_property
    def strange(self) -> dict[str, list[str]]:
        """What is wrong with the form of files, by name; these are not read."""
        return strange(self.path, self.sizes, self.plan)

    @cached_property
    def plan(self) -> dict[str, Any]:
        return self._json("plan.json")

    @cached_property
    def privacy(self) -> dict[str, Any]:
        return self._json("privacy.json")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return self._json("manifest.json")

    @cached_property
    def identity(self) -> dict[str, Any]:
        return self._json("run.json")

    @cached_property
    def spec(self) -> dict[str, Any]:
        return read_yaml(self.path, "spec.yaml")

    @cached_property
    def levels(self) -> list[Level]:
        table = self.table("hierarchy.parquet")
        position = table["level"].to_numpy()
        found = []
        for index, level in enumerate(self.plan["levels"]):
            part = table.filter(pa.array(position == index))
            found.append(
                Level(
                    level["level"],
                    part["code"].combine_chunks(),
                    part["parent"].to_numpy(),
                    part["passes_through"].to_numpy(zero_copy_only=False),
                )
            )
        return found

    @cached_property
    def tree(self) -> list[Level]:
        """The levels that were measured: those of the spine, if there is one."""
        return self.levels if "spine" not in self.plan else self._spine[0]

    @cached_property
    def node_classes(self) -> list[np.ndarray]:
        """Per level of the spine, the class of every node's share."""
        return self._spine[1]

    @cached_property
    def spine_leaves(self) -> np.ndarray:
        """For each leaf of the spine, its position among the published leaves."""
        return self._spine[2]

    @cached_property
    def _spine(self) -> tuple[list[Level], list[np.ndarray], np.ndarray]:
        table = self.table("spine.parquet")
        position, leaf = table["level"].to_numpy(), table["leaf"].to_numpy()
        levels, classes = [], []
        planned = self.plan["spine"]["levels"]
        for index, level in enumerate(planned):
            part = table.filter(pa.array(position == index))
            codes, parent = part["code"].combine_chunks(), part["parent"].to_numpy()
            levels.append(Level(level["level"], codes, parent, np.zeros(len(codes), dtype=bool)))
            classes.append(part["class"].to_numpy().astype(int))
        return levels, classes, leaf[position == len(planned) - 1]

    def leave_out(self, what: str) -> None:
        """Note a check that is not carried out because of what the folder says about itself."""
        self.notes.append(what)
        self.is_reduced = True

    def paths(self, noisy: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """The noisy queries that each kind of path from the root to a leaf meets."""
        if "spine" not in self.plan:
            return [noisy]
        number = {level["level"]: i for i, level in enumerate(self.plan["spine"]["levels"])}
        return [
            [q for q in noisy if path[number[q["level"]]] == q["class"]]
            for path in self.plan["spine"]["paths"]
        ]

    def measurement(self, query: dict[str, Any]) -> str:
        """The file of a planned query."""
        of = f"class={query['class']}/" if "class" in query else ""
        return f"measurements/level={query['level']}/{of}query={query['query']}.parquet"

    def asked_of(self, query: dict[str, Any]) -> tuple[Level, np.ndarray]:
        """The level and the nodes that a query was asked of."""
        index = [level.name for level in self.tree].index(query["level"])
        level = self.tree[index]
        if "class" not in query:
            return level, np.arange(len(level))
        return level, np.flatnonzero(self.node_classes[index] == query["class"])

    @property
    def n_cells(self) -> int:
        return prod(len(categories) for categories in self.plan["schema"].values())

    @cached_property
    def cells(self) -> list[tuple[str, ...]]:
        """Categories of each cell, last attribute fastest."""
        return list(product(*self.plan["schema"].values()))

    def cells_of(self, query: str) -> list[tuple[str, ...]]:
        """The cells that a query asks for; the last cumulative count is public and not asked."""
        if query == "total":
            return [()]
        return self.cells[:-1] if self.has_sizes and query == "cumulative" else self.cells

    @property
    def has_sizes(self) -> bool:
        """Whether this is a release of group sizes."""
        return self.plan["kind"] == "group_sizes"

    @property
    def adds_up(self) -> bool:
        """Whether the method promises that areas add up; a relaxed one does not."""
        return not (self.has_sizes and self.plan["method"].endswith("_relaxed"))

    @property
    def exact_totals(self) -> list[str]:
        """The levels whose published counts must sum to the exact totals, area by area."""
        exact = [q["level"] for q in self.plan["queries"] if q["noise"] is None]
        if not self.has_sizes or self.plan["method"] in ("cumulative_joint", "cumulative_relaxed"):
            return exact
        return exact[:1] if self.adds_up else []

    @property
    def is_whole(self) -> bool:
        """Whether the method promises whole, non-negative counts."""
        return self.plan["method"] != "gls"

    @property
    def has_centres(self) -> bool:
        """Whether the method promises margins of error, around best linear estimates."""
        return self.plan["method"] not in ("topdown", "bottomup")

    def names_cells(self, table: pa.Table, cells: list[tuple[str, ...]], n_areas: int) -> bool:
        """Whether the columns of attributes name these cells in order, for each area."""
        for axis, (name, categories) in enumerate(self.plan["schema"].items()):
            places = {category: place for place, category in enumerate(categories)}
            found = pc.index_in(table[name].cast(pa.string()), pa.array(categories, pa.string()))
            expected = np.tile([places[cell[axis]] for cell in cells], n_areas)
            if found.null_count or not np.array_equal(found.to_numpy(), expected):
                return False
        return True

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A Parquet file, or some of its columns in the order asked for."""
        self.require_form(name)
        try:
            with pq.ParquetFile(self.path / name) as file:
                return file.read(columns)
        except (OSError, pa.ArrowException):
            raise Unreadable(f"{name} is missing or damaged") from None

    def schema(self, name: str) -> pa.Schema:
        """The columns of a Parquet file."""
        self.require_form(name)
        return pq.read_schema(self.path / name)

    def n_rows(self, name: str) -> int:
        """The rows of a Parquet file."""
        self.require_form(name)
        return pq.read_metadata(self.path / name).num_rows

    def require_form(self, name: str) -> None:
        """Fail, before any value is read, where a file does not have the form of its kind."""
        if name not in self.sizes:
            raise Unreadable(f"{name} is missing or damaged")
        if name in self.strange:
            raise Unreadable(self.strange[name][0])

    def released(self, level: str, *columns: str) -> pa.Table:
        return self.table(f"release/{level}.parquet", list(columns) or None)

    def counts(self, level: Level) -> np.ndarray:
        """Published counts, shown areas x cells; fails when the table has another size."""
        values = self.released(level.name, "count")["count"].to_numpy()
        if values.size != level.shown.size * len(self.cells):
            raise Unreadable(f"release/{level.name}.parquet has a wrong number of rows")
        return values.reshape(-1, len(self.cells))

    def leaf_counts(self) -> np.ndarray:
        """Published counts of all leaves x cells; one that ends early is published further up."""
        leaves = self.levels[-1]
        found = np.zeros((len(leaves), len(self.cells)), dtype=self.counts(leaves).dtype)
        node = np.arange(len(leaves))
        pending = np.ones(node.size, dtype=bool)
        for index in range(len(self.levels) - 1, -1, -1):
            level = self.levels[index]
            here = pending & ~level.padding[node]
            row = np.cumsum(~level.padding) - 1
            counts = self.counts(level)
            found[here] = counts[row[node[here]]]
            pending &= ~here
            if index:
                node = level.parent[node]
        return found

    def _json(self, name: str) -> dict[str, Any]:
        return read_json(self.path, name)
