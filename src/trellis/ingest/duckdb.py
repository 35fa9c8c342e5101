"""DuckDB as the engine that reads and tabulates.

Messages of the engine may quote values of the records, so they never leave this file: a failure
is reported by what was attempted.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from trellis.confidential.log import note
from trellis.errors import SourceError
from trellis.ingest.headers import is_header

Source = Path | pa.Table
"""A file, or a frame that was handed over in Python."""

FRAME_NAME = b"trellis.source"
"""In the metadata of a frame: what messages call it, such as the table of a database."""

TEXT = r'VARCHAR|ENUM\(.*\)|"?NULL"?'
WHOLE_NUMBERS = r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
"""Types of columns, as patterns for `Reader.holds`."""

_READERS = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".csv.gz": "read_csv",
    ".tsv": "read_csv",
    ".tsv.gz": "read_csv",
}
# Of a CSV file only the separator is guessed. A code such as 01001 must stay text, and the guess
# at where the table begins would skip a first line that does not fit, and rows with it.
_OPTIONS = {
    "read_parquet": "hive_partitioning = false",
    "read_csv": "all_varchar = true, header = true, skip = 0, comment = '', null_padding = false, "
    "quote = '\"', escape = '\"', hive_partitioning = false",
}
_SEPARATORS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')
_LINE = re.compile(r"on Line: (\d+)")
_SAMPLE = 1000
"""Rows that are compared with the names of columns."""
_MOST_NAMES = 1_000_000
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",  # confidential rows are never spilled to disk
}


def as_table(frame: Any) -> pa.Table:
    """An Arrow table from an Arrow, Polars or pandas frame."""
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        raise SourceError(
            f"A {type(frame).__name__} cannot be read as a table: pass an Arrow table, "
            "a Polars or a pandas frame."
        ) from None


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _reader_of(path: Path) -> str | None:
    return next((r for end, r in _READERS.items() if path.name.lower().endswith(end)), None)


def _first_line(path: Path) -> str:
    """The beginning of a file, to see whether it can be read at all."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            return file.readline(_MOST_NAMES).decode("utf-8", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not a gzip file"
        raise SourceError(f"{path.name} could not be read: {reason}.") from None


def _frame_name(frame: pa.Table) -> str:
    return (frame.schema.metadata or {}).get(FRAME_NAME, b"the frame").decode()


class Reader:
    """One source, opened; `rows` is its name in SQL."""

    rows = "source"

    def __init__(
        self, db: duckdb.DuckDBPyConnection, source: Source, *, confidential: bool = False
    ) -> None:
        self._db, self.confidential = db, confidential
        self.name = source.name if isinstance(source, Path) else _frame_name(source)
        self._has_schema = (
            _reader_of(source) == "read_parquet"
            if isinstance(source, Path)
            else FRAME_NAME in (source.schema.metadata or {})
        )
        if isinstance(source, Path):
            self._view_file(source)
        else:
            self._check_names(source.column_names)
            self.register(self.rows, source)
        with self._attempt():
            described = db.execute(f"DESCRIBE {self.rows}").fetchall()
        self.types = {str(row[0]): str(row[1]) for row in described}

    def require(self, column: str) -> str:
        """A column as an SQL identifier; it must exist."""
        if column not in self.types:
            raise SourceError(f"{self.name} has no column {column!r}. {self._columns_near(column)}")
        return quoted(column)

    def _columns_near(self, column: str) -> str:
        """A hint; of a confidential source only if its first line is not a record."""
        if self.confidential and not self.is_named:
            return "Its first line must name the columns."
        names = {name.casefold(): name for name in self.types}
        if near := get_close_matches(column.casefold(), names, n=1):
            return f"Did you mean {names[near[0]]!r}?"
        if self.confidential:
            return "Compare the names of its columns."
        return f"It has {', '.join(self.types)}."

    @property
    def is_named(self) -> bool | None:
        """Whether columns have names; False or None if these are, or could be, a record."""
        texts = ", ".join(
            f"CAST({quoted(name)} AS VARCHAR) AS c{i}" for i, name in enumerate(self.types)
        )
        first = self.query(f"SELECT {texts} FROM {self.rows} LIMIT {_SAMPLE}")
        found = is_header(list(self.types), [c.to_pylist() for c in first.columns])
        # A Parquet file and a database have names of their own.
        return True if found is None and self._has_schema else found

    def holds(self, column: str, *types: str) -> bool:
        """Whether the type of a column matches one of these patterns completely."""
        return any(re.fullmatch(pattern, self.types[column]) for pattern in types)

    def kind(self, column: str) -> str:
        """The type of a column in a word; DuckDB's own text may list values or fields."""
        return self.types[column].partition("(")[0].lower()

    def code(self, column: str, width: int | None = None) -> str:
        """A column of codes as SQL text, codes of digits zero-padded to `width`."""
        identifier = self.require(column)
        if not self.holds(column, TEXT, WHOLE_NUMBERS):
            raise SourceError(
                f"Column {column!r} of {self.name} holds {self.kind(column)} values; "
                "codes are text or whole numbers."
            )
        text = f"CAST({identifier} AS VARCHAR)"
        if width is None:
            return text
        return (
            f"CASE WHEN length({text}) < {width} AND regexp_full_match({text}, '[0-9]+') "
            f"THEN lpad({text}, {width}, '0') ELSE {text} END"
        )

    def register(self, name: str, table: pa.Table) -> None:
        """Make a table available to queries."""
        with self._attempt():
            self._db.register(name, table)

    def query(self, sql: str) -> pa.Table:
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

    def view(self, name: str, sql: str) -> None:
        """Name a query for later ones."""
        with self._attempt():
            self._db.execute(f"CREATE VIEW {name} AS {sql}")

    def _view_file(self, path: Path) -> None:
        reader = _reader_of(path)
        if reader is None:
            raise SourceError(f"{path.name}: the file type must be one of {', '.join(_READERS)}.")
        if not path.is_file():
            raise SourceError(f"There is no file {path}.")
        first_line = _first_line(path)
        place = escape(str(path)).replace("'", "''")  # the engine expands * ? [
        options = _OPTIONS[reader]
        if reader == "read_csv":
            options += f", delim = {self._separator(place, first_line)}"
            header = options.replace("header = true", "header = false")
            first = self.query(f"SELECT * FROM read_csv('{place}', {header}) LIMIT 1")
            self._check_names([str(name) for row in first.to_pylist() for name in row.values()])
        else:
            self._check_names(self._parquet_names(place))
        self.view(self.rows, f"SELECT * FROM {reader}('{place}', {options})")

    def _separator(self, place: str, first_line: str) -> str:
        """What stands between columns, as an SQL text; guessed once, so that all queries agree."""
        sniffed = self.query(
            f"SELECT Delimiter AS found FROM sniff_csv('{place}', {_OPTIONS['read_csv']})"
        )
        found = sniffed["found"][0].as_py()
        names = _QUOTED.sub("", first_line)
        if found in names or not any(map(names.count, _SEPARATORS)):
            return "'" + found.replace("'", "''") + "'"
        # Where lines have different numbers of columns, the engine takes each line for one column.
        separator = max(_SEPARATORS, key=names.count)
        columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(names.count(separator) + 1))
        self.query(
            f"SELECT count(*) FROM read_csv('{place}', auto_detect = false, header = true, "
            f"delim = '{separator}', quote = '\"', escape = '\"', columns = {{{columns}}})"
        )
        return f"'{separator}'"

    def _parquet_names(self, place: str) -> list[str]:
        """Names of columns, but not of the fields inside of them."""
        names, inside = [], 0
        schema = self.query(f"SELECT name, num_children AS parts FROM parquet_schema('{place}')")
        for field in schema[1:].to_pylist():  # the first stands for the whole row
            if inside:
                inside -= 1
            else:
                names.append(field["name"])
            inside += field["parts"] or 0
        return names

    def _check_names(self, names: Sequence[str]) -> None:
        """The engine renames a second column of a name, and a reader of it would not know."""
        seen = Counter(name.casefold() for name in names if name)  # SQL knows no case
        if twice := [name for name in names if seen[name.casefold()] > 1]:
            # In a file without a header the first record stands in the place of the names.
            which = "" if self.confidential else f" ({twice[0]!r})"
            raise SourceError(
                f"{self.name} has two columns of one name{which}, upper and lower case taken as "
                "the same. Rename one."
            )

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


@contextmanager
def open_source(source: Source, *, confidential: bool = False) -> Iterator[Reader]:
    """Open a file or frame in a private, in-memory engine."""
    with duckdb.connect(":memory:", config=_SETTINGS) as db:
        db.execute("SET enable_progress_bar = false")  # it tells how long a confidential query took
        yield Reader(db, source, confidential=confidential)
