"""Checks of confidential rows that all kinds of release share.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trellis.errors import InputError
from trellis.ingest.duckdb import TEXT, WHOLE_NUMBERS, Reader, quoted
from trellis.model.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

MOST = 2**48
"""Counts above this are not people; it also keeps sums exact in every later step."""

JOINED = "joined"
"""The rows with the position of their leaf."""

_REAL_NUMBERS = r"DOUBLE|FLOAT|DECIMAL\(.*\)"
_TEXT_NUMBER = r"'\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*'"


def join_leaves(reader: Reader, hierarchy: Hierarchy, code: str, names: Mapping[str, str]) -> None:
    """Put the leaf's position beside the counts of every row; a row without one is an error."""
    view_leaves(reader, hierarchy, code, names)
    if any_row(reader, "leaf IS NULL"):
        raise unknown_area(reader)


def view_leaves(reader: Reader, hierarchy: Hierarchy, code: str, names: Mapping[str, str]) -> None:
    """The same, with NULL where a row has no leaf: for those who look at every row anyway.

    Counts get names of our own, since the source's columns may be called anything.
    """
    reader.register("leaves", leaf_table(hierarchy))
    selected = [f"{code} AS code", *(f"{quoted(c)} AS {name}" for c, name in names.items())]
    reader.view(
        JOINED,
        f"SELECT s.* EXCLUDE (code), l.leaf FROM (SELECT {', '.join(selected)} "
        f"FROM {reader.rows}) s LEFT JOIN leaves l ON s.code = l.code",
    )


def leaf_table(hierarchy: Hierarchy) -> pa.Table:
    """Codes of the leaves with their positions."""
    codes = level_codes(hierarchy, hierarchy.leaf_level)
    return pa.table({"code": codes, "leaf": np.arange(len(codes))})


def unknown_area(reader: Reader) -> InputError:
    return InputError(
        f"{reader.name} has rows whose area is missing or is no leaf of the hierarchy. "
        "Compare its area codes (spelling, leading zeros) with the public list of areas."
    )


def check_type(reader: Reader, column: str) -> None:
    """A type that can hold whole numbers."""
    reader.require(column)
    if not reader.holds(column, TEXT, WHOLE_NUMBERS, _REAL_NUMBERS):  # text: in a CSV file
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.kind(column)} values, not counts."
        )


def check_column(reader: Reader, column: str, name: str, what: str = "counts") -> None:
    """Whole numbers of at least zero in every row."""
    for words, fault in number_faults(reader, column, name).items():
        if any_row(reader, fault):
            raise faulty(reader, column, words, what)


def number_faults(reader: Reader, column: str, name: str) -> dict[str, str]:
    """What can be wrong with a number, in words, and how SQL finds it."""
    number = f"TRY_CAST({name} AS DOUBLE)"
    unreadable = f"{number} IS NULL OR NOT isfinite({number})"
    if reader.holds(column, TEXT):
        # As text, 1_000 or 0.99999999999999999999 would pass for a whole number when cast.
        unreadable += f" OR NOT regexp_full_match({name}, {_TEXT_NUMBER})"
    return {
        "missing or unreadable": unreadable,
        "negative": f"{number} < 0",
        "fractional": f"{number} <> floor({number})",
        "impossibly large": f"{number} > {MOST}",
    }


def faulty(reader: Reader, column: str, words: str, what: str = "counts") -> InputError:
    return InputError(
        f"Column {column!r} of {reader.name} has {words} {what}. "
        "Every row needs a whole number of at least zero."
    )


def any_row(reader: Reader, condition: str) -> bool:
    found = reader.query(f"SELECT 1 FROM {JOINED} WHERE {condition} LIMIT 1")
    return found.num_rows > 0
