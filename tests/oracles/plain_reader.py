"""A reader by plain loops over Python values: what the terms of `trellis.ingest.terms` mean.

It knows frames, Parquet files and well-formed CSV files, and is as slow as it is obvious.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trellis.errors import SourceError
from trellis.ingest.columns import check_names
from trellis.ingest.frames import frame_name, is_named_frame
from trellis.ingest.reader import ColumnType, Kind, Source
from trellis.ingest.terms import (
    EACH,
    FIRST_ROWS,
    KEPT,
    ROW,
    ROWS,
    Above,
    AtMost,
    Below,
    Both,
    Code,
    Differs,
    Either,
    Fractional,
    Groups,
    Missing,
    Number,
    Real,
    Rows,
    Unreadable,
)

TEXT_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*")
WORDS = {
    "int8": "tinyint", "int16": "smallint", "int32": "integer", "int64": "bigint",
    "uint8": "utinyint", "uint16": "usmallint", "uint32": "uinteger", "uint64": "ubigint",
    "float": "float", "double": "double", "string": "varchar", "large_string": "varchar",
    "bool": "boolean", "date32[day]": "date",
}  # fmt: skip


@contextmanager
def open_plainly(source: Source, *, confidential: bool = False) -> Iterator[PlainReader]:
    yield PlainReader(source, confidential=confidential)


def column_type(arrow: pa.DataType) -> ColumnType:
    if pa.types.is_dictionary(arrow):
        return column_type(arrow.value_type)
    word = WORDS.get(str(arrow), str(arrow).partition("<")[0].partition("(")[0])
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_null(arrow):
        return ColumnType(Kind.TEXT, word)
    if pa.types.is_integer(arrow):
        return ColumnType(Kind.WHOLE, word)
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return ColumnType(Kind.REAL, "decimal" if pa.types.is_decimal(arrow) else word)
    if pa.types.is_boolean(arrow):
        return ColumnType(Kind.TRUTH, word)
    return ColumnType(Kind.TIME if pa.types.is_temporal(arrow) else Kind.OTHER, word)


def read_file(path: Path) -> pa.Table:
    if path.suffix not in (".parquet", ".csv"):
        raise SourceError(f"The plain reader reads CSV and Parquet, not {path.suffix!r}.")
    if not path.is_file():
        raise SourceError(f"There is no file {path}.")
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with path.open(newline="", encoding="utf-8") as file:
        names, *lines = list(csv.reader(file))
    columns = [[line[i] or None for line in lines if line] for i in range(len(names))]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=names)


def as_text(value):
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def as_real(value):
    """A floating point number, or None."""
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        return None


def as_whole(value):
    """A whole number of 64 bits, or None."""
    real = as_real(value)
    if real is None or not math.isfinite(real):
        return None
    whole = round(Decimal(value.strip() if isinstance(value, str) else value))
    return whole if -(2**63) <= whole < 2**63 else None


class PlainReader:
    def __init__(self, source: Source, *, confidential: bool = False) -> None:
        self.confidential = confidential
        if isinstance(source, Path):
            self.name, self.has_schema = source.name, source.suffix == ".parquet"
            table = read_file(source)
        else:
            self.name, self.has_schema = frame_name(source), is_named_frame(source)
            table = source
        check_names(self.name, table.column_names, confidential=confidential)
        self.types = {field.name: column_type(field.type) for field in table.schema}
        self.columns = {name: table[name].to_pylist() for name in table.column_names}
        self.n_rows = table.num_rows

    # -- the verbs --------------------------------------------------------------------------------

    def sample(self, most):
        return [[as_text(v) for v in column[:most]] for column in self.columns.values()]

    def rows(self, fields, *, in_order=False):
        rows = [
            {name: self._public(f, i) for name, f in fields.items()} for i in range(self.n_rows)
        ]
        if in_order:
            rows.sort(key=lambda row: [(v is None, v or "") for v in row.values()])
        types = {n: pa.float64() if isinstance(f, Real) else pa.string() for n, f in fields.items()}
        return pa.table({n: pa.array([row[n] for row in rows], types[n]) for n in fields})

    def sums(self, relation, by, numbers, tests=()):
        keys = [key.name if isinstance(key, AtMost) else key for key in by]
        rows, groups = self._rows(relation), {}
        for row in rows:
            key = tuple(min(row[k.name], k.limit) if isinstance(k, AtMost) else row[k] for k in by)
            groups.setdefault(key, []).append(row)
        columns = {k: pa.array([key[i] for key in groups], pa.int64()) for i, k in enumerate(keys)}
        for number in numbers:
            totals = [added(row[number] for row in group) for group in groups.values()]
            fits = [None if t is None or abs(t) >= 2**63 else t for t in totals]
            columns[number] = pa.array(fits, pa.int64())
        return pa.table(columns), [any(self._passes(t, r, relation) for r in rows) for t in tests]

    def passed(self, relation, tests):
        rows = self._rows(relation)
        return [any(self._passes(test, row, relation) for row in rows) for test in tests]

    def first(self, relation, test, shown, most):
        rows = [row for row in self._rows(relation) if self._passes(test, row, relation)]
        rows.sort(key=lambda row: row[ROW if isinstance(relation, Rows) else ROWS])
        return pa.table(
            {theirs: [row[ours] for row in rows[:most]] for ours, theirs in shown.items()}
        )

    def largest(self, relation, numbers, most):
        rows = [(max(row[n] for n in numbers), row[ROW]) for row in self._rows(relation)]
        rows.sort(key=lambda row: -row[0])
        return pa.table(
            {"row": [row for _, row in rows[:most]], "number": [n for n, _ in rows[:most]]}
        )

    # -- relations --------------------------------------------------------------------------------

    def _public(self, given, i):
        return (
            as_real(self.columns[given.column][i])
            if isinstance(given, Real)
            else self._field(given, i)
        )

    def _field(self, given, i):
        value = self.columns[given.column][i]
        if isinstance(given, Number):
            return value
        text = as_text(value)
        if not isinstance(given, Code):
            return text
        if text is not None and given.width is not None and re.fullmatch("[0-9]+", text):
            text = text.rjust(given.width, "0")
        return given.missing if text is None else text

    def _rows(self, relation):
        if isinstance(relation, Rows):
            return self._source_rows(relation)
        if isinstance(relation, Groups):
            return self._groups(relation)
        return self._capped(relation)

    def _source_rows(self, given):
        lists = {}
        for name, lookup in given.lookups.items():
            table = lookup.table()
            lists[name] = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
        rows = []
        for i in range(self.n_rows):
            row = {name: self._field(field, i) for name, field in given.fields.items()}
            for name, lookup in given.lookups.items():
                row[name] = lists[name].get(row[lookup.field])
            for name, linear in given.numbers.items():
                terms = [(as_whole(row[n]), factor) for n, factor in linear.factors]
                none = any(value is None for value, _ in terms)
                row[name] = None if none else sum(value * factor for value, factor in terms)
            rows.append(row | {EACH: 1, ROW: i + 1})
        return rows

    def _groups(self, given):
        groups = {}
        for row in self._rows(given.rows):
            if given.where is None or self._passes(given.where, row, given.rows):
                groups.setdefault(tuple(row[key] for key in given.by), []).append(row)
        return [
            dict(zip(given.by, key, strict=True))
            | {name: added(row[number] for row in rows) for name, number in given.sums.items()}
            | {name: min(row[number] for row in rows) for name, number in given.least.items()}
            | {EACH: 1, ROWS: [row[ROW] for row in rows][:FIRST_ROWS]}
            for key, rows in groups.items()
        ]

    def _capped(self, given):
        units = {}
        for group in self._rows(given.groups):
            units.setdefault(group[given.unit], []).append(group)
        kept = []
        for unit, groups in units.items():
            left = given.most
            for group in sorted(groups, key=lambda g: order_of(unit, [g[k] for k in given.order])):
                kept.append(group | {KEPT: min(left, group[given.number])})
                left -= kept[-1][KEPT]
        return kept

    # -- tests ------------------------------------------------------------------------------------

    def _passes(self, test, row, relation):
        match test:
            case Both(one, other):
                return self._passes(one, row, relation) and self._passes(other, row, relation)
            case Either(one, other):
                return self._passes(one, row, relation) or self._passes(other, row, relation)
            case Missing(name):
                return row[name] is None
            case Differs(name, other):
                return row[name] is not None and row[name] != row[other]
        real = as_real(row[test.name])
        match test:
            case Unreadable(name):
                odd = isinstance(row[name], str) and not TEXT_NUMBER.fullmatch(row[name])
                return real is None or not math.isfinite(real) or odd
            case Fractional():
                return real is not None and math.isfinite(real) and real != math.floor(real)
            case Below(_, limit):
                return real is not None and real < limit
            case Above(_, limit):
                return real is not None and math.isfinite(real) and real > limit
        raise AssertionError(f"a question that the protocol does not have: {test}")


def added(numbers):
    there = [number for number in numbers if number is not None]
    return sum(there) if there else None


def order_of(unit, keys):
    """An order that looks random, and depends on nothing but the unit and the keys."""
    return hashlib.sha256(repr((unit, keys)).encode()).digest()
