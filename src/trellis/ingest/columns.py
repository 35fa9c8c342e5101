"""Names and types of the columns of a file; of its values nothing is told."""

from __future__ import annotations

from pathlib import Path

from trellis.errors import SourceError
from trellis.ingest.duckdb import TEXT, WHOLE_NUMBERS, Reader, open_source

TEXT_KIND, WHOLE_KIND = "text", "whole numbers"
_KINDS = {
    TEXT: TEXT_KIND,
    WHOLE_NUMBERS: WHOLE_KIND,
    r"DOUBLE|FLOAT|DECIMAL\(.*\)": "numbers",
    "BOOLEAN": "true or false",
    r"DATE|TIME.*": "dates and times",
}


def column_kinds(path: Path, *, has_header: bool = False) -> dict[str, str]:
    """Columns with their type in a word. In a CSV file all are text.

    Names may be written to files, so the first line must not be a record; `has_header` says that
    somebody has looked at it.
    """
    with open_source(path, confidential=True) as reader:
        is_named = reader.is_named
        if is_named is False:
            raise SourceError(
                f"The first line of {path.name} looks like a record and does not name the columns: "
                "a name is empty, a number, or a value of its column. Put a line of names on top."
            )
        if not is_named and not has_header:
            raise SourceError(
                f"Nothing tells whether the first line of {path.name} names the columns or is a "
                "record. If it names them, say so with --header; otherwise put names on top."
            )
        return {name: _kind(reader, name) for name in reader.types}


def _kind(reader: Reader, name: str) -> str:
    known = (kind for pattern, kind in _KINDS.items() if reader.holds(name, pattern))
    return next(known, "other values")
