"""What a report is made from: the public files of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.atomic import read_json
from trellis.storage.parquet import read_table, table_shape

RELEASE, AREAS = "release", "areas"


@dataclass(frozen=True, slots=True, eq=False)
class PublicRun:
    """A run whose tables are written; `date` (YYYY-MM-DD) is the day it was made."""

    COMMON_COLUMNS: ClassVar = ("geocode", "level", "count", "std_error", "lower", "upper")

    path: Path
    plan: Plan
    hierarchy: Hierarchy
    run_id: str
    date: str

    @property
    def notice(self) -> str:
        """The notice at the head of a withdrawn release; empty for others."""
        place = self.path / "withdrawn.json"
        return str(read_json(place)["notice"]) if place.exists() else ""

    def tables(self, level: str) -> list[str]:
        """The tables of a level, smallest first: one of its name, or several in its folder.

        A level of a histogram may have none.
        """
        folder = self.path / RELEASE
        if not (folder / level).is_dir():
            return [] if self.plan.design.by_query else [level]
        names = [f"{level}/{path.stem}" for path in (folder / level).glob("*.parquet")]
        return sorted(names, key=lambda name: (self.n_rows(name), name))

    @property
    def has_statistics(self) -> bool:
        """Whether statistics of areas are published besides their counts."""
        return (self.path / RELEASE / "statistics").is_dir()

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A released table, such as `county` or `statistics/county`."""
        return read_table(self._file(name), columns)

    def n_rows(self, name: str) -> int:
        return table_shape(self._file(name))[0]

    def columns(self, name: str) -> list[str]:
        return table_shape(self._file(name))[1]

    def links(self, name: str) -> list[str]:
        """Where the report finds the files of a released table."""
        files = (f"{name}{ending}" for ending in (".csv", ".parquet"))
        return [f"../{RELEASE}/{file}" for file in files if (self.path / RELEASE / file).exists()]

    def _file(self, name: str) -> Path:
        return self.path / RELEASE / f"{name}.parquet"
