"""DuckDB as the engine that reads and tabulates.

Messages of the engine may quote values of the records, so they never leave this file: a failure
is reported by what was attempted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from trellis.errors import SourceError
from trellis.ingest.columns import check_names
from trellis.ingest.confidential_log import note
from trellis.ingest.duckdb.files import is_parquet, table_of_file
from trellis.ingest.duckdb.sql import SOURCE, Dialect, field, selected
from trellis.ingest.frames import frame_name, is_named_frame
from trellis.ingest.identifiers import quoted
from trellis.ingest.reader import ColumnType, Kind, Source
from trellis.ingest.terms import ROW, ROWS, AtMost, Field, Lookup, Relation, Rows, Test

_KINDS = {
    r'VARCHAR|ENUM\(.*\)|"?NULL"?': Kind.TEXT,
    r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?": Kind.WHOLE,
    r"DOUBLE|FLOAT|DECIMAL\(.*\)": Kind.REAL,
    "BOOLEAN": Kind.TRUTH,
    r"DATE|TIME.*": Kind.TIME,
}
_LINE = re.compile(r"on Line: (\d+)")
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",  # confidential rows are never spilled to disk
}


@contextmanager
def open_with_duckdb(source: Source, *, confidential: bool = False) -> Iterator[DuckDbReader]:
    """Open a file or frame in a private, in-memory engine."""
    with duckdb.connect(":memory:", config=_SETTINGS) as db:
        db.execute("SET enable_progress_bar = false")  # it tells how long a confidential query took
        yield DuckDbReader(db, source, confidential=confidential)


class DuckDbReader:
    """One source, opened; its table is called `source` in SQL."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, source: Source, *, confidential: bool = False
    ) -> None:
        self._db, self.confidential = db, confidential
        self._lists: dict[int, tuple[str, Lookup]] = {}
        if isinstance(source, Path):
            self.name, self.has_schema = source.name, is_parquet(source)
            names, table = table_of_file(source, self.query)
            check_names(self.name, names, confidential=confidential)
            with self._attempt():
                db.execute(f"CREATE VIEW {SOURCE} AS SELECT * FROM {table}")
        else:
            self.name, self.has_schema = frame_name(source), is_named_frame(source)
            check_names(self.name, source.column_names, confidential=confidential)
            self._register(SOURCE, source)
        with self._attempt():
            described = db.execute(f"DESCRIBE {SOURCE}").fetchall()
        self.types: Mapping[str, ColumnType] = {
            str(row[0]): _column_type(str(row[1])) for row in described
        }
        self._dialect = Dialect(self.types, self._list)

    def sample(self, most: int) -> list[list[str | None]]:
        texts = {f"c{i}": f"CAST({quoted(name)} AS VARCHAR)" for i, name in enumerate(self.types)}
        first = self.query(f"SELECT {selected(texts)} FROM {SOURCE} LIMIT {most}")
        return [column.to_pylist() for column in first.columns]

    def rows(self, fields: Mapping[str, Field], *, in_order: bool = False) -> pa.Table:
        columns = selected({name: field(given) for name, given in fields.items()})
        order = f" ORDER BY {', '.join(map(quoted, fields))}" if in_order else ""
        return self.query(f"SELECT {columns} FROM {SOURCE}{order}")

    def sums(
        self,
        relation: Relation,
        by: Sequence[str | AtMost],
        numbers: Sequence[str],
        tests: Sequence[Test] = (),
    ) -> tuple[pa.Table, list[bool]]:
        sql = self._dialect
        keys = {key.name if isinstance(key, AtMost) else key: sql.key(key) for key in by}
        columns = selected({**keys, **{name: sql.total(name) for name in numbers}})
        passed = "".join(f", bool_or({sql.test(test, relation)})" for test in tests)
        order = ", ".join(str(i + 1) for i in range(len(keys)))
        found = self.query(
            f"SELECT {columns}{passed} FROM ({sql.relation(relation)}) GROUP BY {order}"
        )
        n = len(keys) + len(numbers)
        return found.select(range(n)), [True in c.unique().to_pylist() for c in found.columns[n:]]

    def passed(self, relation: Relation, tests: Sequence[Test]) -> list[bool]:
        if not tests:
            return []
        # As a filter, a test could be answered by the statistics of a Parquet file, which omit NaN.
        found = ", ".join(
            f"coalesce(bool_or({self._dialect.test(test, relation)}), false)" for test in tests
        )
        answers = self.query(f"SELECT {found} FROM ({self._dialect.relation(relation)})")
        return [column[0].as_py() for column in answers.columns]

    def first(
        self, relation: Relation, test: Test, shown: Mapping[str, str], most: int
    ) -> pa.Table:
        rows, passes = self._dialect.relation(relation), self._dialect.test(test, relation)
        columns = selected({theirs: self._dialect.number(ours) for ours, theirs in shown.items()})
        if isinstance(relation, Rows):
            chosen = f"SELECT unnest(min({ROW}, {most}) FILTER (WHERE {passes})) FROM ({rows})"
            return self.query(
                f"SELECT {columns} FROM ({rows}) WHERE {ROW} IN ({chosen}) ORDER BY {ROW}"
            )
        return self.query(
            f"SELECT {columns} FROM ({rows}) WHERE {passes} ORDER BY {ROWS} LIMIT {most}"
        )

    def largest(self, relation: Rows, numbers: Sequence[str], most: int) -> pa.Table:
        number = f"greatest({', '.join(map(self._dialect.number, numbers))})"
        rows = self._dialect.relation(relation)
        return self.query(
            f"SELECT {ROW}, {number} AS number FROM ({rows}) ORDER BY number DESC LIMIT {most}"
        )

    def query(self, sql: str) -> pa.Table:
        """What the engine answers."""
        # The engine notices Ctrl-C between its tasks alone, and one of these may take hours. So
        # this thread waits, and passes an interrupt on.
        with self._attempt(), ThreadPoolExecutor(1) as engine:
            answer = engine.submit(lambda: self._db.sql(sql).to_arrow_table())
            try:
                return answer.result()
            except KeyboardInterrupt:
                while not answer.done():  # a query that is about to begin takes no notice
                    self._db.interrupt()
                    wait([answer], timeout=0.1)
                raise

    def _list(self, lookup: Lookup) -> str:
        """The name of the table of a list, which is registered once."""
        if id(lookup) not in self._lists:
            name = f"listed_{len(self._lists)}"
            self._register(name, lookup.table())
            self._lists[id(lookup)] = name, lookup  # alive, so that its id stays its own
        return self._lists[id(lookup)][0]

    def _register(self, name: str, table: pa.Table) -> None:
        with self._attempt():
            self._db.register(name, table)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, RuntimeError) as error:
            if str(error) == "Query interrupted":  # what the engine makes of Ctrl-C
                raise KeyboardInterrupt from None
            raise SourceError(f"{self.name} could not be read: {self._reason(error)}") from None

    def _reason(self, error: Exception) -> str:
        """What the engine's words mean; they may quote rows, and are not shown themselves."""
        text = str(error)
        if "Expected Number of Columns" in text:
            line = _LINE.search(text)
            words = "a line has more or fewer columns than the first."
            if line is None or not self.confidential:
                return f"{words} Look at line {line[1]}." if line else words
            return f"{words} Which line: {note([f'{self.name}, line {line[1]}: {words}'])}."
        if "This file is not utf-8" in text:
            return "it is not text in UTF-8."
        if isinstance(error, duckdb.OutOfMemoryException):
            return "there is not enough memory."
        return "it is damaged, or not a Parquet or CSV file with a header."


def _column_type(described: str) -> ColumnType:
    """DuckDB's own text may list values or fields of a type: of it only the first word is kept."""
    kinds = (kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, described))
    return ColumnType(next(kinds, Kind.OTHER), described.partition("(")[0].lower())
