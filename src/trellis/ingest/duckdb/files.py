"""Files as tables of DuckDB: where they are, and how their text is cut into columns."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from glob import escape
from pathlib import Path

import pyarrow as pa

from trellis.errors import SourceError

Query = Callable[[str], pa.Table]

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
_MOST_NAMES = 1_000_000


def is_parquet(path: Path) -> bool:
    return _reader_of(path) == "read_parquet"


def _reader_of(path: Path) -> str | None:
    return next((r for end, r in _READERS.items() if path.name.lower().endswith(end)), None)


def table_of_file(path: Path, query: Query) -> tuple[list[str], str]:
    """The names of its columns as written in the file, and the file as a table of SQL."""
    reader = _reader_of(path)
    if reader is None:
        raise SourceError(f"{path.name}: the file type must be one of {', '.join(_READERS)}.")
    if not path.is_file():
        raise SourceError(f"There is no file {path}.")
    first_line = _first_line(path)
    place = escape(str(path)).replace("'", "''")  # the engine expands * ? [
    options = _OPTIONS[reader]
    if reader == "read_parquet":
        return _parquet_names(place, query), f"{reader}('{place}', {options})"
    options += f", delim = {_separator(place, first_line, query)}"
    header = options.replace("header = true", "header = false")
    first = query(f"SELECT * FROM read_csv('{place}', {header}) LIMIT 1")
    names = [str(name) for row in first.to_pylist() for name in row.values()]
    return names, f"{reader}('{place}', {options})"


def _first_line(path: Path) -> str:
    """The beginning of a file, to see whether it can be read at all."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            return file.readline(_MOST_NAMES).decode("utf-8", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not a gzip file"
        raise SourceError(f"{path.name} could not be read: {reason}.") from None


def _separator(place: str, first_line: str, query: Query) -> str:
    """The separator of columns, as an SQL text; guessed once, so that all queries agree."""
    sniffed = query(f"SELECT Delimiter AS found FROM sniff_csv('{place}', {_OPTIONS['read_csv']})")
    found = sniffed["found"][0].as_py()
    names = _QUOTED.sub("", first_line)
    if found in names or not any(map(names.count, _SEPARATORS)):
        return "'" + found.replace("'", "''") + "'"
    # Where lines have different numbers of columns, the engine takes each line for one column.
    separator = max(_SEPARATORS, key=names.count)
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(names.count(separator) + 1))
    query(
        f"SELECT count(*) FROM read_csv('{place}', auto_detect = false, header = true, "
        f"delim = '{separator}', quote = '\"', escape = '\"', columns = {{{columns}}})"
    )
    return f"'{separator}'"


def _parquet_names(place: str, query: Query) -> list[str]:
    """Names of columns, but not of the fields inside them."""
    names, inside = [], 0
    schema = query(f"SELECT name, num_children AS parts FROM parquet_schema('{place}')")
    for field in schema[1:].to_pylist():  # the first stands for the whole row
        if inside:
            inside -= 1
        else:
            names.append(field["name"])
        inside += field["parts"] or 0
    return names
