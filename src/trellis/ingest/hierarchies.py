"""Reads the public tree of areas from columns, code prefixes or parent-child rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source
from trellis.ingest.parent_child import paths_from_parents
from trellis.model.hierarchy import CODE, Codes, Hierarchy

Root = tuple[str, str]
"""Level and code of a node that is put above all others."""


def from_level_columns(
    source: Source,
    columns: Sequence[str],
    root: Root | None = None,
    *,
    confidential: bool = False,
) -> Hierarchy:
    """One column of codes per level, root first; empty where a leaf has ended."""
    with open_source(source, confidential=confidential) as reader:
        codes = [f"coalesce({reader.code(column)}, '')" for column in columns]
        return _build(list(columns), _sorted_columns(reader, codes), root)


def from_prefixes(
    source: Source,
    column: str,
    prefixes: Mapping[str, int],
    width: int | None = None,
    root: Root | None = None,
    *,
    confidential: bool = False,
) -> Hierarchy:
    """Levels are prefixes of one code, such as 2, 5 and 11 characters of a geocode."""
    length = list(prefixes.values())[-1]
    with open_source(source, confidential=confidential) as reader:
        code = reader.code(column, width)
        odd = reader.query(
            f"SELECT code FROM (SELECT {code} AS code FROM {reader.rows}) "
            f"WHERE code IS NULL OR length(code) <> {length} LIMIT 1"
        )
        for value in odd["code"].to_pylist():
            shown = "An empty code" if value is None else f"Code {value[:80]!r}"
            raise InputError(
                f"{shown} in column {column!r} of {reader.name} does not have the {length} "
                "characters of the last prefix. Correct it, or declare code.width to zero-pad."
            )
        columns = _sorted_columns(reader, [f"left({code}, {n})" for n in prefixes.values()])
        return _build(list(prefixes), columns, root)


def from_parent_child(
    source: Source,
    child: str,
    parent: str,
    levels: Sequence[str] | None = None,
    width: int | None = None,
    root: Root | None = None,
    *,
    confidential: bool = False,
) -> Hierarchy:
    """One row per area with its parent; roots have no parent, or one that is not listed."""
    with open_source(source, confidential=confidential) as reader:
        pairs = reader.query(
            f"SELECT {reader.code(child, width)} AS child, {reader.code(parent, width)} AS parent "
            f"FROM {reader.rows}"
        )
    paths = paths_from_parents(pairs["child"].to_pylist(), pairs["parent"].to_pylist())
    if root is not None:
        paths = [(root[1], *path) for path in paths]
        below = levels or [f"level_{i}" for i in range(1, max(map(len, paths), default=1))]
        levels = [root[0], *below]
    return Hierarchy.from_paths(paths, levels)


def _sorted_columns(reader: Reader, codes: Sequence[str]) -> list[Codes]:
    """The columns of codes, rows in order; a column is handed on as soon as it is converted."""
    names = [f"level_{i}" for i in range(len(codes))]
    selected = ", ".join(f"{code} AS {name}" for code, name in zip(codes, names, strict=True))
    table = reader.query(f"SELECT {selected} FROM {reader.rows} ORDER BY {', '.join(names)}")
    return [_to_codes(table[name]) for name in names]


def _to_codes(column: pa.ChunkedArray) -> Codes:
    return np.asarray(column.to_numpy(), dtype=object).astype(CODE)


def _build(levels: list[str], columns: list[Codes], root: Root | None) -> Hierarchy:
    if root is not None:
        top = np.full(columns[0].size, root[1], dtype=CODE)
        levels, columns = [root[0], *levels], [top, *columns]
    return Hierarchy.from_columns(levels, columns)
