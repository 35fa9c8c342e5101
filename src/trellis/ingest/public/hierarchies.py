"""Reads the public tree of areas from columns, code prefixes or parent-child rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.columns import code
from trellis.ingest.engines import open_source
from trellis.ingest.public.hrc import paths_from_hrc
from trellis.ingest.public.parent_child import paths_from_parents
from trellis.ingest.reader import Source
from trellis.model.trees.codes import CODE, Codes
from trellis.model.trees.hierarchy import MOST_SHOWN, Hierarchy
from trellis.storage.codes import codes_from_arrow

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

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
    names = [f"level_{i}" for i in range(len(columns))]
    with open_source(source, confidential=confidential) as reader:
        codes = [replace(code(reader, column), missing="") for column in columns]
        table = reader.rows(dict(zip(names, codes, strict=True)), in_order=True)
    return _build(columns, table, lambda rows, level: rows[names[level]], root)


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
    lengths = list(prefixes.values())
    with open_source(source, confidential=confidential) as reader:
        table = reader.rows({"code": code(reader, column, width)}, in_order=True)
    _check_lengths(table["code"], lengths[-1], f"column {column!r} of {reader.name}")

    def prefix(rows: pa.Table, level: int) -> pa.ChunkedArray:
        if lengths[level] == lengths[-1]:
            return rows["code"]
        return pc.utf8_slice_codeunits(rows["code"], 0, lengths[level])

    return _build(list(prefixes), table, prefix, root)


def _check_lengths(codes: pa.ChunkedArray, length: int, where: str) -> None:
    odd = pc.fill_null(pc.not_equal(pc.utf8_length(codes), length), True)
    if wrong := codes.filter(odd)[:MOST_SHOWN].to_pylist():
        names = ("An empty code" if code is None else f"Code {code[:80]!r}" for code in wrong)
        raise InputError(
            *(
                f"{name} in {where} does not have the {length} characters of the last prefix. "
                "Correct it, or declare code.width to zero-pad."
                for name in dict.fromkeys(names)
            )
        )


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
        codes = {"child": code(reader, child, width), "parent": code(reader, parent, width)}
        pairs = reader.rows(codes)
    paths = paths_from_parents(pairs["child"].to_pylist(), pairs["parent"].to_pylist())
    return _from_paths(paths, levels, root)


def from_hrc(
    source: Source, lead: str, levels: Sequence[str] | None = None, root: Root | None = None
) -> Hierarchy:
    """A tau-Argus file of codes; see `trellis.ingest.public.hrc`."""
    if not isinstance(source, Path):
        raise InputError("hierarchy.hrc is a file of its own: name it in the spec.")
    return _from_paths(paths_from_hrc(source, lead), levels, root)


def _from_paths(
    paths: list[tuple[str, ...]], levels: Sequence[str] | None, root: Root | None
) -> Hierarchy:
    if root is not None:
        paths = [(root[1], *path) for path in paths]
        below = levels or [f"level_{i}" for i in range(1, max(map(len, paths), default=1))]
        levels = [root[0], *below]
    return Hierarchy.from_paths(paths, levels)


def _build(
    levels: Sequence[str],
    rows: pa.Table,
    column: Callable[[pa.Table, int], pa.ChunkedArray],
    root: Root | None,
) -> Hierarchy:
    """A tree from sorted rows; `column` gives the codes of a level for some of them."""
    changes, ended = [], []
    for level in range(len(levels)):
        codes = column(rows, level)
        changes.append(pc.not_equal(codes[1:], codes[:-1]).to_numpy())
        ended.append(pc.equal(codes, "").to_numpy())
    above = 0 if root is None else 1
    if root is not None:
        levels = [root[0], *levels]
        none = np.zeros(len(rows), dtype=bool)
        changes, ended = [none[1:], *changes], [none, *ended]

    def codes_at(level: int, chosen: NDArray[np.intp]) -> Codes:
        if root is not None and level == 0:
            return np.full(chosen.size, root[1], dtype=CODE)
        part = rows if chosen.size == len(rows) else rows.take(pa.array(chosen))
        return codes_from_arrow(column(part, level - above))

    return Hierarchy.from_sorted_rows(levels, changes, ended, codes_at)
