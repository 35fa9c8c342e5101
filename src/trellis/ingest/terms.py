"""What may be asked of the rows of a source, in terms that every engine understands.

A relation is a set of rows under names of ours: `Rows` of the source, `Groups` of rows, or rows
`Capped` by unit. Engines translate relations and tests; `tests/oracles/plain_reader.py` says by
plain loops what they mean. Values are in lists that an engine joins, never in its language.

Every relation has the number `EACH`, which is one in each row. `Rows` have `ROW`, their number in
the source from 1 (a header does not count), and `Groups` have `ROWS`, the numbers of their first
rows; both serve the confidential log alone, so an engine may leave them out elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

EACH, ROW, ROWS, KEPT = "each", "row", "rows", "kept"

FIRST_ROWS = 100
"""Rows of a group that the log can name."""


@dataclass(frozen=True, slots=True)
class Code:
    """A column of text or whole numbers as text; digits are padded with zeros to `width`.

    `missing` stands for a code that is not there.
    """

    column: str
    width: int | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A column of any type as text."""

    column: str


@dataclass(frozen=True, slots=True)
class Number:
    """A column that should hold whole numbers: shown as it is, added up as a whole number.

    What is not a whole number of 64 bits has no value to add. The tests below find it; what an
    engine makes of a text such as 0x1F, which `Unreadable` finds, is left to the engine.
    """

    column: str


@dataclass(frozen=True, slots=True)
class Real:
    """A column as 64-bit floating point; missing where it cannot be read."""

    column: str


Field = Code | Text | Number | Real


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """What a public list says of the text in a field; missing where the list does not have it.

    Codes of the list are distinct. Without `values`, a code stands for its position.
    """

    field: str
    codes: pa.Array
    values: pa.Array | None = None

    def table(self) -> pa.Table:
        """Columns `code` and `value`."""
        if self.values is not None:
            return pa.table({"code": self.codes, "value": self.values})
        return pa.table({"code": self.codes, "value": np.arange(len(self.codes), dtype=np.int32)})


@dataclass(frozen=True, slots=True)
class Linear:
    """Numbers and looked-up positions times whole factors, added up; missing if one of them is."""

    factors: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of the source: fields of it, what lists say of them, and numbers made of both."""

    fields: Mapping[str, Field]
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    numbers: Mapping[str, Linear] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """One row for each combination of the keys `by` among the rows that pass `where`.

    `sums` and `least` map names of this relation to numbers of `rows`.
    """

    rows: Rows
    by: tuple[str, ...]
    sums: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, str] = field(default_factory=dict)
    where: Test | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Capped:
    """At most `most` of the `number` of each unit, taken from its groups one after another.

    The order of a unit's groups looks random, and depends on the unit and its own groups alone:
    so a change of one unit moves nothing of another. The engine chooses the order.
    `unit` and `order` are keys of the groups; the relation has `order` and the number `KEPT`.
    """

    groups: Groups
    unit: str
    order: tuple[str, ...]
    number: str
    most: int


Relation = Rows | Groups | Capped


@dataclass(frozen=True, slots=True)
class AtMost:
    """A number as a key: those above `limit` fall together with it."""

    name: str
    limit: int


@dataclass(frozen=True, slots=True)
class Missing:
    """No value in a field, a lookup or a number."""

    name: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A number that is missing, not finite or not written as people write numbers."""

    name: str


@dataclass(frozen=True, slots=True)
class Fractional:
    """A finite number that is not whole."""

    name: str


@dataclass(frozen=True, slots=True)
class Below:
    """A number less than `limit`; what is not a number is not."""

    name: str
    limit: int


@dataclass(frozen=True, slots=True)
class Above:
    """A finite number greater than `limit`."""

    name: str
    limit: int


@dataclass(frozen=True, slots=True)
class Differs:
    """The one is there, and the other is missing or not the same."""

    name: str
    other: str


@dataclass(frozen=True, slots=True)
class Both:
    one: Test
    other: Test


@dataclass(frozen=True, slots=True)
class Either:
    one: Test
    other: Test


Test = Missing | Unreadable | Fractional | Below | Above | Differs | Both | Either
"""Whether a row of a relation has a property. A test of a missing value finds nothing, apart from
`Missing`, `Unreadable` and `Differs`."""
