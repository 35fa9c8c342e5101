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


def column_kinds(path: Path) -> dict[str, str]:
    """Columns with their type in a word. In a CSV file all are text."""
    with open_source(path, confidential=True) as reader:
        names = list(reader.types)
        if any(not name.strip() or _is_number(name) for name in names):
            raise SourceError(
                f"The first line of {path.name} does not name the columns: a name is empty or a "
                "number, as if a record stood there. Put a line of names on top."
            )
        return {name: _kind(reader, name) for name in names}


def _kind(reader: Reader, name: str) -> str:
    known = (kind for pattern, kind in _KINDS.items() if reader.holds(name, pattern))
    return next(known, "other values")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
