"""Databases through ADBC drivers, as Arrow tables: SQLite and PostgreSQL (extra `sql`).

Messages of drivers may quote values of the records or credentials, so they never leave this file:
a failure is reported by what was attempted.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from trellis.errors import SourceError
from trellis.ingest.frames import FRAME_NAME
from trellis.ingest.identifiers import quoted

_REASONS = {
    "28": ("authentication failed", "the user or the password is not accepted"),
    "3D000": ('" does not exist', "there is no such database"),
    "42P01": ("no such table", "there is no such table"),
    "42703": ("no such column", "there is no such column"),
    "42601": ("syntax error", "the query is not SQL that it understands"),
    "42501": ("permission denied", "the user may not read it"),
    "25006": ("readonly database", "a query must not change anything"),
}
"""States of SQL errors, and what drivers say where they give no state."""


def read_sql(address: str, table: str | None, query: str | None, name: str) -> pa.Table:
    """All rows of a table or a query, in an order that does not depend on the database.

    The order matters to the fingerprint of the input: the same rows must give the same.
    """
    if query is None:
        assert table is not None
        query = "SELECT * FROM " + ".".join(quoted(part) for part in table.split("."))
    kind = address.partition(":")[0]
    errors, connection = _connect(address, kind)
    try:
        with connection, connection.cursor() as cursor:
            if kind != "sqlite":
                cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(query)
            found = cursor.fetch_arrow_table()
    except (errors, OSError, ValueError) as error:  # pyarrow's errors are of the last two kinds
        raise SourceError(
            f"The database could not give {name}: {_reason(error)}. Try it with the database's "
            "own client."
        ) from None
    return _in_order(found, name).replace_schema_metadata({FRAME_NAME: name.encode()})


def _connect(address: str, kind: str) -> tuple[type[Exception], Any]:
    driver = "sqlite" if kind == "sqlite" else "postgresql"
    try:
        dbapi = import_module(f"adbc_driver_{driver}.dbapi")
    except ImportError:
        raise SourceError(
            "Databases need the extra sql: pip install 'trellis-dp[sql]', or use a file."
        ) from None
    if kind == "sqlite":
        path = Path(address.partition(":")[2])
        if not path.is_file():
            raise SourceError(f"There is no file {path}.")
        address = f"file:{quote(str(path))}?mode=ro"
    try:
        return dbapi.Error, dbapi.connect(address)
    except dbapi.Error as error:
        raise SourceError(
            f"The database could not be reached: {_reason(error)}. Check address and credentials."
        ) from None


def _reason(error: Exception) -> str:
    """What the state of an error means; without one, a phrase that many such texts share."""
    state, text = getattr(error, "sqlstate", None) or "", str(error).lower()
    for code, (said, words) in _REASONS.items():
        if state.startswith(code) or (not state and said in text):
            return words
    return "it gave no reason that may be shown"


def _in_order(table: pa.Table, name: str) -> pa.Table:
    """Rows sorted by all columns, types of the database turned into plain ones."""
    if len(set(table.column_names)) != len(table.column_names):
        raise SourceError(f"Two columns of {name} have the same name. Rename one in a query.")
    columns = [_plain(column) for column in table.columns]
    plain = pa.table(dict(zip(table.column_names, columns, strict=True)))
    try:
        return plain.sort_by([(column, "ascending") for column in plain.column_names])
    except pa.ArrowException:
        raise SourceError(
            f"A column of {name} has a type that cannot be used. Name the columns in a query."
        ) from None


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        parts = [chunk.storage for chunk in column.chunks]
        return pa.chunked_array(parts, column.type.storage_type)
    return column
