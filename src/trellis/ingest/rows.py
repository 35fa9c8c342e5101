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

MOST = 2**48
"""Counts above this are not people; it also keeps sums exact in every later step."""

JOINED = "joined"
"""The rows with the position of their leaf."""

_REAL_NUMBERS = r"DOUBLE|FLOAT|DECIMAL\(.*\)"
_TEXT_NUMBER = r"'\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*'"


def join_leaves(reader: Reader, hierarchy: Hierarchy, code: str, names: Mapping[str, str]) -> None:
    """Put the leaf's position beside the counts of every row; a row without one is an error.

    Counts get names of our own, since the source's columns may be called anything.
    """
    codes = hierarchy.codes(hierarchy.leaf_level)
    leaves = pa.table({"code": codes.astype(object), "leaf": np.arange(codes.size)})
    reader.register("leaves", leaves)
    selected = [f"{code} AS code", *(f"{quoted(c)} AS {name}" for c, name in names.items())]
    reader.view(
        JOINED,
        f"SELECT s.* EXCLUDE (code), l.leaf FROM (SELECT {', '.join(selected)} "
        f"FROM {reader.rows}) s LEFT JOIN leaves l ON s.code = l.code",
    )
    if any_row(reader, "leaf IS NULL"):
        raise InputError(
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
    number = f"TRY_CAST({name} AS DOUBLE)"
    unreadable = f"{number} IS NULL OR NOT isfinite({number})"
    if reader.holds(column, TEXT):
        # As text, 1_000 or 0.99999999999999999999 would pass for a whole number when cast.
        unreadable += f" OR NOT regexp_full_match({name}, {_TEXT_NUMBER})"
    for fault, words in (
        (unreadable, "missing or unreadable"),
        (f"{number} < 0", "negative"),
        (f"{number} <> floor({number})", "fractional"),
        (f"{number} > {MOST}", "impossibly large"),
    ):
        if any_row(reader, fault):
            raise InputError(
                f"Column {column!r} of {reader.name} has {words} {what}. "
                "Every row needs a whole number of at least zero."
            )


def any_row(reader: Reader, condition: str) -> bool:
    found = reader.query(f"SELECT 1 FROM {JOINED} WHERE {condition} LIMIT 1")
    return found.num_rows > 0
