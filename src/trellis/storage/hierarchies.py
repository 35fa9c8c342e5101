"""A hierarchy as one Parquet file: a row per node, levels root first, nodes in order."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.hierarchy import Hierarchy
from trellis.storage.parquet import codes_from_arrow, codes_to_arrow, read_table, write_table

_LEVELS = b"trellis.levels"


def write_hierarchy(path: Path, hierarchy: Hierarchy) -> None:
    """Columns: level (position), code, parent (position on the level above), passes_through."""
    parts = [_level_table(hierarchy, level) for level in range(hierarchy.n_levels)]
    names = "\n".join(hierarchy.level_names).encode()
    write_table(path, pa.concat_tables(parts).replace_schema_metadata({_LEVELS: names}))


def read_hierarchy(path: Path) -> Hierarchy:
    table = read_table(path)
    names = tuple((table.schema.metadata or {})[_LEVELS].decode().split("\n"))
    level = table["level"].to_numpy()
    bounds = np.searchsorted(level, np.arange(len(names) + 1))
    codes, starts, passing = [], [], []
    for index, (begin, end) in enumerate(pairwise(bounds)):
        part = table.slice(begin, end - begin)
        codes.append(codes_from_arrow(part["code"]))
        passing.append(part["passes_through"].to_numpy().astype(np.bool_))
        if index:
            n_parents = codes[index - 1].size
            parents = part["parent"].to_numpy()
            starts.append(np.searchsorted(parents, np.arange(n_parents + 1)).astype(np.int64))
    return Hierarchy(names, tuple(codes), tuple(starts), tuple(passing))


def hierarchy_digest(hierarchy: Hierarchy) -> str:
    """SHA-256 of the whole tree, independent of how it is stored."""
    digest = sha256("\n".join(hierarchy.level_names).encode())
    for level in range(hierarchy.n_levels):
        codes = codes_to_arrow(hierarchy.codes(level))
        for buffer in codes.buffers()[1:]:
            digest.update(buffer if buffer is not None else b"")
        if level < hierarchy.leaf_level:
            digest.update(hierarchy.child_start[level].astype("<i8").tobytes())
        digest.update(np.packbits(hierarchy.passes_through[level]).tobytes())
    return digest.hexdigest()


def _level_table(hierarchy: Hierarchy, level: int) -> pa.Table:
    size = hierarchy.size(level)
    parents = hierarchy.parents(level) if level else np.full(size, -1, dtype=np.int64)
    return pa.table(
        {
            "level": np.full(size, level, dtype=np.int16),
            "code": codes_to_arrow(hierarchy.codes(level)),
            "parent": parents,
            "passes_through": hierarchy.passes_through[level],
        }
    )
