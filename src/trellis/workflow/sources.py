"""Where a source is: a file that the spec names, or a frame handed over in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.errors import SpecError
from trellis.ingest.duckdb import Source, as_table
from trellis.workflow.config import Spec


def resolve_source(spec: Spec, named: str | None, frame: Any, key: str) -> Source:
    """The frame if one is given, else the file that the spec names."""
    if frame is not None:
        return as_table(frame)
    if named is None:
        raise SpecError(f"{key} is missing: name a file, or pass a frame in Python.")
    path: Path = spec.resolve(named)
    return path
