"""Checks of confidential rows that all kinds of release share.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential, and goes to the confidential log if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa

from trellis.confidential.log import note
from trellis.errors import InputError
from trellis.ingest.duckdb import TEXT, WHOLE_NUMBERS, Reader, Source, open_source, quoted
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

MOST = 2**48
"""Counts above this are not people; it also keeps sums exact in every later step."""

MOST_LOGGED = 10_000
"""Rows that the confidential log lists for one fault."""

ROW = "row_number() OVER () AS row"
"""The number of a row in its source, from 1; a header does not count."""

JOINED = "joined"
"""The rows with the position of their leaf."""

_REAL_NUMBERS = r"DOUBLE|FLOAT|DECIMAL\(.*\)"
_TEXT_NUMBER = r"'\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*'"


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows at fault: words that may be shown, a test in SQL, and what the log shows of each row.

    `columns` have names of ours; beside them stand the names that the log calls them.
    """

    words: str
    test: str
    columns: Mapping[str, str] = field(default_factory=dict)


def refuse(reader: Reader, faults: Sequence[Fault], rows: str = JOINED) -> None:
    """Raise every fault that some row has."""
    if not faults:
        return
    # As a filter, a test could be answered by the statistics of a Parquet file, which omit NaN.
    tests = ", ".join(f"coalesce(bool_or({fault.test}), false)" for fault in faults)
    found = reader.query(f"SELECT {tests} FROM {rows}").columns
    refuse_found(
        reader, [f for f, is_there in zip(faults, found, strict=True) if is_there[0].as_py()], rows
    )


def refuse_found(reader: Reader, faults: Sequence[Fault], rows: str = JOINED) -> None:
    """Raise these faults."""
    if faults:
        raise InputError(*(_with_rows(reader, fault, rows) for fault in faults))


def _with_rows(reader: Reader, fault: Fault, rows: str) -> str:
    columns = ", ".join(["row", *renamed(fault.columns)])
    first = f"SELECT unnest(min(row, {MOST_LOGGED}) FILTER (WHERE {fault.test})) FROM {rows}"
    sql = f"SELECT {columns} FROM {rows} WHERE row IN ({first}) ORDER BY row"
    return logged(reader, fault.words, sql)


def renamed(columns: Mapping[str, str]) -> list[str]:
    """Columns under the names that they have in the source."""
    return [f"{ours} AS {quoted(theirs)}" for ours, theirs in columns.items()]


def logged(reader: Reader, words: str, sql: str) -> str:
    """The words, with a place in the confidential log that holds what the query finds."""
    if not reader.confidential:
        return words
    return f"{words} Which rows: {note(_lines(reader, words, sql))}."


def _lines(reader: Reader, words: str, sql: str) -> Iterator[str]:
    yield words
    found = reader.query(f"SELECT * FROM ({sql}) LIMIT {MOST_LOGGED}").to_pylist()
    for row in found:
        yield "  " + ", ".join(f"{name} {_shown(value)}" for name, value in row.items())
    if len(found) == MOST_LOGGED:
        yield f"  (the first {MOST_LOGGED:,})"


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)  # a HUGEINT is a Decimal


def join_leaves(reader: Reader, hierarchy: Hierarchy, code: str, names: Mapping[str, str]) -> None:
    """Put the leaf's position beside the counts of every row.

    It is NULL where a row has no leaf, for `unknown_area` to refuse. Counts get names of our own,
    since the source's columns may be called anything. `row` counts the rows from 1; where nobody
    asks for it, the engine leaves it out.
    """
    reader.register("leaves", leaf_table(hierarchy))
    selected = [f"{code} AS area", ROW, *(f"{quoted(c)} AS {name}" for c, name in names.items())]
    reader.view(
        JOINED,
        f"SELECT s.*, l.leaf FROM (SELECT {', '.join(selected)} FROM {reader.rows}) s "
        "LEFT JOIN leaves l ON s.area = l.code",
    )


def leaf_table(hierarchy: Hierarchy) -> pa.Table:
    """Codes of the leaves with their positions."""
    codes = level_codes(hierarchy, hierarchy.leaf_level)
    return pa.table({"code": codes, "leaf": np.arange(len(codes))})


def unknown_area(reader: Reader) -> Fault:
    return Fault(
        f"{reader.name} has rows whose area is missing or is not a leaf of the hierarchy. "
        "Compare its area codes (spelling, leading zeros) with the public list of areas.",
        "leaf IS NULL",
        {"area": "area"},
    )


def check_columns(
    source: Source, texts: Sequence[str], numbers: Sequence[str], *, rows_too: bool
) -> None:
    """All columns that are missing or of another type; and numbers, where areas are not known."""
    faults = []
    with open_source(source, confidential=True) as reader:
        for column in dict.fromkeys([*texts, *numbers]):
            try:
                reader.require(column)
                if column in numbers:
                    check_type(reader, column)
            except InputError as error:
                faults += error.faults
        if faults:
            raise InputError(*faults)
        if rows_too:
            named = {column: f"number_{i}" for i, column in enumerate(dict.fromkeys(numbers))}
            selected = ", ".join([ROW, *(f"{quoted(c)} AS {n}" for c, n in named.items())])
            reader.view(JOINED, f"SELECT {selected} FROM {reader.rows}")
            refuse(reader, [f for c, n in named.items() for f in number_faults(reader, c, n)])


def check_type(reader: Reader, column: str) -> None:
    """A type that can hold whole numbers."""
    reader.require(column)
    if not reader.holds(column, TEXT, WHOLE_NUMBERS, _REAL_NUMBERS):  # text: in a CSV file
        raise InputError(
            f"Column {column!r} of {reader.name} holds {reader.kind(column)} values, not counts."
        )


def number_faults(reader: Reader, column: str, name: str, what: str = "counts") -> list[Fault]:
    """Whatever is not a whole number of at least zero."""
    number = f"TRY_CAST({name} AS DOUBLE)"
    unreadable = f"{number} IS NULL OR NOT isfinite({number})"
    if reader.holds(column, TEXT):
        # As text, 1_000 or 0.99999999999999999999 would pass for a whole number when cast.
        unreadable += f" OR NOT regexp_full_match({name}, {_TEXT_NUMBER})"
    tests = {
        "missing or unreadable": unreadable,
        "negative": f"{number} < 0",
        "fractional": f"{number} <> floor({number})",
        "impossibly large": f"{number} > {MOST} AND isfinite({number})",
    }
    return [
        Fault(
            f"Column {column!r} of {reader.name} has {words} {what}. "
            "Every row needs a whole number of at least zero.",
            test,
            {name: column},
        )
        for words, test in tests.items()
    ]


def too_large(reader: Reader, number: str, rows: str = JOINED) -> InputError:
    """Counts that are possible one by one, and not together."""
    words = f"{reader.name} holds impossibly large counts: together they exceed 2^48."
    largest = f"SELECT row, {number} AS number FROM {rows} ORDER BY number DESC LIMIT 100"
    return InputError(logged(reader, words, largest))
