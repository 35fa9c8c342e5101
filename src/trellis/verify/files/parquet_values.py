"""Whether what a Parquet file says about its values is true of them. Yields what is wrong.

Footers state the least and the greatest value of each column, and pages have dictionaries of texts.
Readers skip both, so they could say something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import SystemRandom
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from trellis.verify.files.run_files import RunFiles

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

MOST_ROWS = 20_000_000
"""Rows that are looked at in all; of larger releases, pieces are drawn."""


def values(run: RunFiles) -> Iterator[str]:
    """Parquet files state the ends that their values have, and hold no text without a row."""
    known: set[str] | None = None
    for name, group in _drawn(run):
        with pq.ParquetFile(run.path / name) as file:
            stated = file.metadata.row_group(group)
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
        with pq.ParquetFile(run.path / name, read_dictionary=texts) as file:
            table = file.read_row_group(group)
        for index, (title, column) in enumerate(
            zip(table.column_names, table.columns, strict=True)
        ):
            if not _is_true(stated.column(index).statistics, column):
                yield f"{name} states other ends of {title} than its values have"
            if unused := _unused(column):
                known = _names(run) if known is None else known
                if unused - known:
                    yield f"{name} holds texts of {title} that no row has"


def _drawn(run: RunFiles) -> list[tuple[str, int]]:
    """Row groups by file and number: all of them, or as many as there is time for."""
    groups, rows = [], {}
    for name in sorted(run.sizes):
        if name.endswith(".parquet") and name not in run.strange:
            about = pq.read_metadata(run.path / name)
            for group in range(about.num_row_groups):
                groups.append((name, group))
                rows[name, group] = about.row_group(group).num_rows
    if sum(rows.values()) <= MOST_ROWS:
        return groups
    SystemRandom().shuffle(groups)
    chosen, left = [], MOST_ROWS
    for place in groups:
        if rows[place] <= left:
            chosen.append(place)
            left -= rows[place]
    run.notes.append(
        f"ends of columns were compared in {len(chosen)} of {len(groups)} pieces of Parquet files"
    )
    return sorted(chosen)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_dictionary(kind)


def _is_true(stated: Any, column: pa.ChunkedArray) -> bool:
    if stated is None:
        return True
    if stated.null_count != column.null_count or stated.distinct_count is not None:
        return False
    if not stated.has_min_max:
        return True
    if not pa.types.is_dictionary(column.type):
        return _ends(column) == (stated.min, stated.max)
    # Of a dictionary that came with the values, Arrow states the ends, used or not.
    listed = pa.chunked_array([chunk.dictionary for chunk in column.chunks], pa.string())
    return (stated.min, stated.max) in (_ends(column.cast(pa.string())), _ends(listed))


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any]:
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py()


def _unused(column: pa.ChunkedArray) -> set[str]:
    """Texts of the dictionaries that stand in no row."""
    if not pa.types.is_dictionary(column.type):
        return set()
    found: set[str] = set()
    for chunk in column.chunks:
        if len(pc.unique(chunk.indices).drop_null()) < len(chunk.dictionary):
            used = chunk.dictionary.take(pc.unique(chunk.indices).drop_null())
            found |= set(chunk.dictionary.to_pylist()) - set(used.to_pylist())
    return found


def _names(run: RunFiles) -> set[str]:
    """Codes of areas, and the labels of the plan: a dictionary may have more than a piece needs."""
    found = set(_texts([run.plan["schema"], run.plan.get("recodes", {}), run.plan["levels"]]))
    for name in {"hierarchy.parquet", "destinations.parquet"} & set(run.sizes):
        found |= set(run.table(name, ["code"])["code"].cast(pa.string()).to_pylist())
    return found


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        yield from chain(content, *map(_texts, content.values()))
    elif isinstance(content, list):
        yield from chain(*map(_texts, content))
    elif isinstance(content, str):
        yield content
