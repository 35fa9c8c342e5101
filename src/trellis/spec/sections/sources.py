"""Where a spec finds rows: in a file, or in a database.

    source: people.parquet
    source: {sql: "sqlite:people.db", table: people}
    source: {sql: "postgresql://${DB_USER}:${DB_PASSWORD}@db.example/census", query: SELECT ..}

Passwords come from the environment. A spec that spells one out is refused, and no source is ever
copied into a run folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Tag, model_validator

from trellis.errors import SpecError
from trellis.spec.sections.base import Model
from trellis.spec.sections.values import PathText, is_same_file

_SQLITE = "sqlite:"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PASSWORD = re.compile(r"://[^/?#@]*?:([^/?#]*)@|[?&](?:ssl)?password=([^&]*)", re.IGNORECASE)


class SqlSource(Model):
    """A table or a query of a database; `${NAME}` in the address is taken from the environment."""

    sql: PathText
    table: str | None = None
    query: str | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either table or query")
        if not self.sql.startswith(("sqlite:", "postgresql:", "postgres:")):
            raise ValueError("sql must begin with sqlite: or postgresql:")
        for user_part, option in _PASSWORD.findall(self.sql):
            if _VARIABLE.sub("", user_part or option):
                raise ValueError(
                    "sql contains a password: put it into an environment variable and write "
                    "${NAME} in its place"
                )
        return self

    @property
    def name(self) -> str:
        """What messages call it; a query may hold anything, and is not repeated."""
        return f"table {self.table!r}" if self.table is not None else "the result of the query"

    def address(self, resolve: Callable[[str], Path]) -> str:
        """The address with what the environment says, and a file's place."""
        missing = [name for name in _VARIABLE.findall(self.sql) if name not in os.environ]
        if missing:
            raise SpecError(f"The environment variable {missing[0]} of a sql address is not set.")
        text = _VARIABLE.sub(lambda found: os.environ[found[1]], self.sql)
        kind, _, rest = text.partition(":")
        return f"{_SQLITE}{resolve(rest).resolve()}" if kind == "sqlite" else text


def _path(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("a path is needed, or {sql: address, table: name}")
    return value


def _form(value: Any) -> str:
    return "~sql" if isinstance(value, Mapping | SqlSource) else "~"


SourceField = Annotated[
    Annotated[PathText, BeforeValidator(_path), Tag("~")] | Annotated[SqlSource, Tag("~sql")],
    Discriminator(_form),
]
"""A path, or a database with a table or query."""


def may_share_rows(
    one: str | SqlSource, other: str | SqlSource, resolve: Callable[[str], Path]
) -> bool:
    """Whether two sources are the same rows, or could be.

    Names of tables are compared without their schema, and without regard to case, as SQLite does.
    What a query or a view reads is not looked into: a query could read anything, a view is taken
    for a table of its own.
    """
    if isinstance(one, str) and isinstance(other, str):
        return is_same_file(resolve(one), resolve(other))
    if isinstance(one, str) or isinstance(other, str):
        return False
    if not _is_same_database(_known(one, resolve), _known(other, resolve)):
        return False
    names = [source.table and source.table.lower().rpartition(".")[2] for source in (one, other)]
    return None in names or names[0] == names[1]


def _is_same_database(one: str, other: str) -> bool:
    if one.startswith(_SQLITE) and other.startswith(_SQLITE):
        return is_same_file(Path(one.removeprefix(_SQLITE)), Path(other.removeprefix(_SQLITE)))
    return one == other


def _known(source: SqlSource, resolve: Callable[[str], Path]) -> str:
    try:
        return source.address(resolve)
    except SpecError:  # a variable is not set; the reader will say so
        return source.sql
