"""Relations and tests as SQL of DuckDB.

Names are ours or quoted, and values are never put into SQL: lists are tables that it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trellis.ingest.identifiers import quoted
from trellis.ingest.reader import ColumnType, Kind
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
    Capped,
    Code,
    Differs,
    Either,
    Field,
    Fractional,
    Groups,
    Linear,
    Lookup,
    Missing,
    Number,
    Real,
    Relation,
    Rows,
    Test,
    Text,
    Unreadable,
)

SOURCE = "source"
"""The table of all rows of the source."""

_TEXT_NUMBER = r"'\s*[+-]?[0-9]{1,300}(\.[0-9]{0,9})?\s*'"


def field(given: Field) -> str:
    """A field as an expression over the columns of the source."""
    column = quoted(given.column)
    match given:
        case Code():
            return _code(f"CAST({column} AS VARCHAR)", given)
        case Text():
            return f"CAST({column} AS VARCHAR)"
        case Number():
            return column
        case Real():
            return f"TRY_CAST({column} AS DOUBLE)"


def _code(text: str, given: Code) -> str:
    if given.width is not None:
        text = (
            f"CASE WHEN length({text}) < {given.width} AND regexp_full_match({text}, '[0-9]+') "
            f"THEN lpad({text}, {given.width}, '0') ELSE {text} END"
        )
    return text if given.missing is None else f"coalesce({text}, {_literal(given.missing)})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def selected(columns: Mapping[str, str]) -> str:
    """Expressions under their names."""
    return ", ".join(f"{expression} AS {quoted(name)}" for name, expression in columns.items())


@dataclass(frozen=True, slots=True)
class Dialect:
    """Translates what is asked of a source with columns of these types.

    `table_of` gives the name of the table that holds a list.
    """

    types: Mapping[str, ColumnType]
    table_of: Callable[[Lookup], str]

    def relation(self, given: Relation) -> str:
        """A relation as a query."""
        match given:
            case Rows():
                return self._rows(given)
            case Groups():
                return self._groups(given)
            case Capped():
                return self._capped(given)

    def _rows(self, given: Rows) -> str:
        fields = {name: field(column) for name, column in given.fields.items()}
        # Where no one asks for the number of a row, the engine leaves it out.
        inner = selected({**fields, ROW: "row_number() OVER ()"})
        tables = {name: f"list_{i}" for i, name in enumerate(given.lookups)}
        joins = "".join(
            f" LEFT JOIN {self.table_of(lookup)} {tables[name]} "
            f"ON s.{quoted(lookup.field)} = {tables[name]}.code"
            for name, lookup in given.lookups.items()
        )
        found = {name: f"{table}.value" for name, table in tables.items()}
        numbers = {name: _linear(linear, given, found) for name, linear in given.numbers.items()}
        more = selected({**found, **numbers})
        listed = f"s.*, {more}" if more else "s.*"
        return f"SELECT {listed} FROM (SELECT {inner} FROM {SOURCE}) s{joins}"

    def _groups(self, given: Groups) -> str:
        columns = {
            **{name: quoted(name) for name in given.by},
            **{name: f"sum({self.number(number)})" for name, number in given.sums.items()},
            **{name: f"min({self.number(number)})" for name, number in given.least.items()},
            ROWS: f"min({quoted(ROW)}, {FIRST_ROWS})",
        }
        where = "" if given.where is None else f"WHERE {self.test(given.where, given.rows)} "
        keys = ", ".join(map(quoted, given.by))
        rows = self._rows(given.rows)
        return f"SELECT {selected(columns)} FROM ({rows}) {where}GROUP BY {keys}"

    def _capped(self, given: Capped) -> str:
        order = ", ".join(map(quoted, given.order))
        unit, number = quoted(given.unit), self.number(given.number)
        before = (
            f"sum({number}) OVER (PARTITION BY {unit} ORDER BY hash({unit}, {order}), {order} "
            f"ROWS UNBOUNDED PRECEDING) - {number}"
        )
        kept = f"least({number}, greatest(0, {given.most} - before))"
        groups = f"SELECT *, {before} AS before FROM ({self._groups(given.groups)})"
        return f"SELECT {order}, {kept} AS {quoted(KEPT)} FROM ({groups})"

    def number(self, name: str) -> str:
        return "1" if name == EACH else quoted(name)

    def total(self, name: str) -> str:
        """A sum in 64 bits."""
        whole = "count(*)" if name == EACH else f"sum({quoted(name)})"
        return f"TRY_CAST({whole} AS BIGINT)"

    def key(self, given: str | AtMost) -> str:
        if isinstance(given, AtMost):
            return f"CAST(least({self.number(given.name)}, {given.limit}) AS BIGINT)"
        return quoted(given)

    def test(self, given: Test, over: Relation) -> str:
        """A test as a condition on the rows of a relation; NULL where a value is missing."""
        match given:
            case Missing(name):
                return f"{quoted(name)} IS NULL"
            case Unreadable(name):
                return self._unreadable(name, over)
            case Fractional(name):
                value = self._value(name, over)
                return f"{value} <> floor({value})"
            case Below(name, limit):
                return f"{self._value(name, over)} < {limit}"
            case Above(name, limit):
                value = self._value(name, over)
                finite = f" AND isfinite({value})" if _is_given(name, over) else ""
                return f"{value} > {limit}{finite}"
            case Differs(name, other):
                one = quoted(name)
                return f"{one} IS NOT NULL AND {one} IS DISTINCT FROM {quoted(other)}"
            case Both(one, other):
                return f"({self.test(one, over)}) AND ({self.test(other, over)})"
            case Either(one, other):
                return f"({self.test(one, over)}) OR ({self.test(other, over)})"

    def _value(self, name: str, over: Relation) -> str:
        return f"TRY_CAST({quoted(name)} AS DOUBLE)" if _is_given(name, over) else self.number(name)

    def _unreadable(self, name: str, over: Relation) -> str:
        value = self._value(name, over)
        test = f"{value} IS NULL OR NOT isfinite({value})"
        column = over.fields[name].column if isinstance(over, Rows) else None
        if column is not None and self.types[column].kind is Kind.TEXT:
            # As text, 1_000 or 0.99999999999999999999 would pass for a whole number when cast.
            test += f" OR NOT regexp_full_match({quoted(name)}, {_TEXT_NUMBER})"
        return test


def _is_given(name: str, over: Relation) -> bool:
    """Whether a number is a column of the source, of whatever type, rather than one of ours."""
    return isinstance(over, Rows) and name in over.fields


def _linear(linear: Linear, rows: Rows, found: Mapping[str, str]) -> str:
    terms = []
    for name, factor in linear.factors:
        # In 64 bits a number cannot be so large that sums fail; in 128 bits sums cannot either.
        value = f"CAST(TRY_CAST(s.{quoted(name)} AS BIGINT) AS HUGEINT)"
        if name not in rows.fields:
            value = f"CAST({found[name]} AS BIGINT)"
        sign = "+" if factor >= 0 else "-"
        terms.append(f"{sign} {value}" + ("" if abs(factor) == 1 else f" * {abs(factor)}"))
    return " ".join(terms) or "0"
