"""Where a source is: a file or a database that the spec names, or a frame handed over in Python."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from trellis.errors import ConfidentialWarning, SpecError
from trellis.ingest.adbc import read_sql
from trellis.ingest.frames import are_one, as_table, is_copy
from trellis.ingest.reader import Source
from trellis.spec import Spec
from trellis.spec.sections.sources import SqlSource


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


def is_frame_of_records(frame: Any, records: Any, what: str) -> bool:
    """Whether something public was handed over as the frame of the records, or a part of it."""
    if frame is None or records is None:
        return False
    if are_one(frame, records):
        return True
    if is_copy(frame, records):
        warnings.warn(
            f"{what}: this frame has the same rows as the records. If it was made from them, it "
            "reveals something about them, outside any budget.",
            ConfidentialWarning,
            stacklevel=2,
        )
    return False
