"""The port to engines that read and tabulate: one source, opened.

A reader never quotes a value of a confidential source: engines' own messages stay inside it, and a
failure is told as `SourceError` by what was attempted. Counts come back from a confidential source,
and rows only where the owner of the records asked for the confidential log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from trellis.ingest.terms import AtMost, Field, Relation, Rows, Test

Source = Path | pa.Table
"""A file, or a frame that was handed over in Python."""


class Kind(Enum):
    """What a column holds."""

    TEXT = "text"
    WHOLE = "whole numbers"
    REAL = "numbers"
    TRUTH = "true or false"
    TIME = "dates and times"
    OTHER = "other values"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The kind of a column, and its type in a word of SQL such as `double`."""

    kind: Kind
    word: str


class Reader(Protocol):
    """One source, and the questions that it answers."""

    name: str
    """What messages call the source."""
    confidential: bool
    has_schema: bool
    """Whether the source has names of columns apart from its rows, as Parquet has, not CSV."""
    types: Mapping[str, ColumnType]

    def sample(self, most: int) -> list[list[str | None]]:
        """The first rows, at most `most`, as text: one list for each column."""
        ...

    def rows(self, fields: Mapping[str, Field], *, in_order: bool = False) -> pa.Table:
        """Fields of all rows of a public table, sorted by all of them or as they stand."""
        ...

    def sums(
        self,
        relation: Relation,
        by: Sequence[str | AtMost],
        numbers: Sequence[str],
        tests: Sequence[Test] = (),
    ) -> tuple[pa.Table, list[bool]]:
        """Sums by key, in 64 bits, missing where they do not fit; and which tests some row passes.

        The table has a column for each key and number. The source is read once.
        """
        ...

    def passed(self, relation: Relation, tests: Sequence[Test]) -> list[bool]:
        """Which tests some row passes."""
        ...

    def first(
        self, relation: Relation, test: Test, shown: Mapping[str, str], most: int
    ) -> pa.Table:
        """The first rows or groups that pass, in the order of the source, for the confidential log.

        `shown` maps names of the relation, `ROW` and `ROWS` to names of the columns.
        """
        ...

    def largest(self, relation: Rows, numbers: Sequence[str], most: int) -> pa.Table:
        """Columns `row` and `number`: the rows whose largest number is largest, for the log."""
        ...


class Engine(Protocol):
    """Opens sources."""

    def __call__(
        self, source: Source, *, confidential: bool = False
    ) -> AbstractContextManager[Reader]: ...
