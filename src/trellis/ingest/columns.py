"""Columns that a spec names: whether a source has them, and of which type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from trellis.errors import InputError, SourceError
from trellis.ingest.headers import is_header
from trellis.ingest.reader import Kind, Reader
from trellis.ingest.terms import Code

_SAMPLE = 1000
"""Rows that are compared with the names of columns."""


def require(reader: Reader, column: str) -> None:
    """The column must exist."""
    if column not in reader.types:
        hint = _columns_near(reader, column)
        raise SourceError(f"{reader.name} has no column {column!r}. {hint}")


def _columns_near(reader: Reader, column: str) -> str:
    """A hint; of a confidential source only if its first line is not a record."""
    if reader.confidential and not is_named(reader):
        return "Its first line must name the columns."
    names = {name.casefold(): name for name in reader.types}
    if near := get_close_matches(column.casefold(), names, n=1):
        return f"Did you mean {names[near[0]]!r}?"
    if reader.confidential:
        return "Compare the names of its columns."
    return f"It has {', '.join(reader.types)}."


def is_named(reader: Reader) -> bool | None:
    """Whether columns have names; False or None if these are, or could be, a record."""
    found = is_header(list(reader.types), reader.sample(_SAMPLE))
    return True if found is None and reader.has_schema else found


def code(reader: Reader, column: str, width: int | None = None) -> Code:
    """A column of codes, after a check of its type."""
    require(reader, column)
    if not holds(reader, column, Kind.TEXT, Kind.WHOLE):
        raise SourceError(
            f"Column {column!r} of {reader.name} holds {reader.types[column].word} values; "
            "codes are text or whole numbers."
        )
    return Code(column, width)


def check_number(reader: Reader, column: str) -> None:
    """A type that can hold whole numbers."""
    require(reader, column)
    if not holds(reader, column, Kind.TEXT, Kind.WHOLE, Kind.REAL):  # text: in a CSV file
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.types[column].word} values, "
            "not counts."
        )


def holds(reader: Reader, column: str, *kinds: Kind) -> bool:
    return reader.types[column].kind in kinds


def check_names(source: str, names: Sequence[str], *, confidential: bool) -> None:
    """An engine would rename a second column of the same name, and no reader would notice."""
    seen = Counter(name.casefold() for name in names if name)  # SQL knows no case
    if twice := [name for name in names if seen[name.casefold()] > 1]:
        # In a file without a header the first record takes the place of the names.
        which = "" if confidential else f" ({twice[0]!r})"
        raise SourceError(
            f"{source} has two columns with the same name{which} (case does not matter). Rename "
            "one."
        )
