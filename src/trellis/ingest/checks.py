"""Checks of rows that all kinds of release share.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: of confidential rows all of that goes to the confidential log, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from trellis.errors import InputError
from trellis.ingest.confidential_log import note
from trellis.ingest.reader import Reader
from trellis.ingest.terms import (
    ROW,
    Above,
    Below,
    Fractional,
    Lookup,
    Missing,
    Relation,
    Rows,
    Test,
    Unreadable,
)
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

MOST = 2**48
"""Counts above this are not people; it also keeps sums exact in every later step."""

MOST_LOGGED = 10_000
"""Rows that the confidential log lists for one fault."""

_MOST_LARGE = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows at fault: words that may be shown, a test, and what the log shows of each row.

    `columns` have names of ours; with them come the names that the log uses.
    """

    words: str
    test: Test
    columns: Mapping[str, str] = field(default_factory=dict)


def refuse(reader: Reader, faults: Sequence[Fault], rows: Relation) -> None:
    """Raise every fault that some row has."""
    refuse_found(reader, faults, reader.passed(rows, [fault.test for fault in faults]), rows)


def refuse_found(
    reader: Reader, faults: Sequence[Fault], found: Sequence[bool], rows: Relation
) -> None:
    """Raise the faults that were found."""
    there = [fault for fault, is_there in zip(faults, found, strict=True) if is_there]
    if there:
        raise InputError(*(_with_rows(reader, fault, rows) for fault in there))


def _with_rows(reader: Reader, fault: Fault, rows: Relation) -> str:
    shown = {ROW: ROW, **fault.columns}
    return logged(reader, fault.words, lambda: reader.first(rows, fault.test, shown, MOST_LOGGED))


def refuse_groups(reader: Reader, groups: Relation, fault: Fault) -> None:
    """Raise if there are groups at fault, with what the log shows of them."""
    if any(reader.passed(groups, [fault.test])):
        raise group_error(reader, groups, fault)


def group_error(reader: Reader, groups: Relation, fault: Fault) -> InputError:
    """An error about groups that are known to be at fault."""

    def find() -> pa.Table:
        return reader.first(groups, fault.test, fault.columns, MOST_LOGGED)

    return InputError(logged(reader, fault.words, find))


def logged(reader: Reader, words: str, find: Callable[[], pa.Table]) -> str:
    """The words, with a place in the confidential log that holds what is found."""
    if not reader.confidential:
        return words
    return f"{words} Which rows: {note(_lines(words, find))}."


def _lines(words: str, find: Callable[[], pa.Table]) -> Iterator[str]:
    yield words
    found = find()[:MOST_LOGGED].to_pylist()
    for row in found:
        yield "  " + ", ".join(f"{name} {_shown(value)}" for name, value in row.items())
    if len(found) == MOST_LOGGED:
        yield f"  (the first {MOST_LOGGED:,})"


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)  # 128 bits are a Decimal


def leaf_of(field: str, hierarchy: Hierarchy) -> Lookup:
    """The position of the leaf whose code is in a field; `unknown_area` refuses what has none."""
    return Lookup(field, level_codes(hierarchy, hierarchy.leaf_level))


def unknown_area(reader: Reader) -> Fault:
    return Fault(
        f"{reader.name} has rows whose area is missing or is not a leaf of the hierarchy. "
        "Compare its area codes (spelling, leading zeros) with the public list of areas.",
        Missing("leaf"),
        {"area": "area"},
    )


def number_faults(reader: Reader, column: str, name: str, what: str = "counts") -> list[Fault]:
    """Whatever is not a whole number of at least zero."""
    tests: dict[str, Test] = {
        "missing or unreadable": Unreadable(name),
        "negative": Below(name, 0),
        "fractional": Fractional(name),
        "impossibly large": Above(name, MOST),
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


def too_large(reader: Reader, rows: Rows, *numbers: str) -> InputError:
    """Counts that are possible one by one, and not together."""
    words = f"{reader.name} holds impossibly large counts: together they exceed 2^48."
    return InputError(logged(reader, words, lambda: reader.largest(rows, numbers, _MOST_LARGE)))
