"""What a report is made from: the public files of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.storage.parquet import read_table

RELEASE = "release"


@dataclass(frozen=True, slots=True, eq=False)
class PublicRun:
    """A run whose tables are written; `date` (YYYY-MM-DD) is the day it was made."""

    path: Path
    plan: Plan
    hierarchy: Hierarchy
    run_id: str
    date: str

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A released table, such as `county` or `statistics/county`."""
        return read_table(self.path / RELEASE / f"{name}.parquet", columns)

    def links(self, name: str) -> list[str]:
        """Where the report finds the files of a released table."""
        files = (f"{name}{ending}" for ending in (".csv", ".parquet"))
        return [f"../{RELEASE}/{file}" for file in files if (self.path / RELEASE / file).exists()]
