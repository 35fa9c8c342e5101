"""Where a source is: a file or a database that the spec names, or a frame handed over in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.errors import SpecError
from trellis.ingest.adbc import read_sql
from trellis.ingest.duckdb import Source, as_table
from trellis.workflow.config import Spec
from trellis.workflow.config.sources import SqlSource


def resolve_source(spec: Spec, named: str | SqlSource | None, frame: Any, key: str) -> Source:
    """The frame if one is given, else the file or the rows of the database that the spec names."""
    if frame is not None:
        return as_table(frame)
    if named is None:
        raise SpecError(f"{key} is missing: name a file or a database, or pass a frame in Python.")
    if isinstance(named, SqlSource):
        return read_sql(named.address(spec.resolve), named.table, named.query, named.name)
    path: Path = spec.resolve(named)
    return path
