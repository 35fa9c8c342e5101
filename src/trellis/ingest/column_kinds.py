"""Names and types of the columns of a file; nothing is told of its values."""

from __future__ import annotations

from pathlib import Path

from trellis.errors import SourceError
from trellis.ingest.columns import is_named
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Kind

TEXT_KIND, WHOLE_KIND = Kind.TEXT.value, Kind.WHOLE.value


def column_kinds(path: Path, *, has_header: bool = False) -> dict[str, str]:
    """Columns with their type in a word. In a CSV file all are text.

    Names may be written to files, so the first line must not be a record; `has_header` says that
    someone has looked at it.
    """
    with open_source(path, confidential=True) as reader:
        named = is_named(reader)
        if named is False:
            raise SourceError(
                f"The first line of {path.name} looks like a record, not like names of columns: "
                "a name is empty, a number, or a value of its column. Put a line of names on top."
            )
        if not named and not has_header:
            raise SourceError(
                f"It is unclear whether the first line of {path.name} names the columns or is a "
                "record. If it names them, say so with --header; otherwise put names on top."
            )
        return {name: kind.kind.value for name, kind in reader.types.items()}
