"""A hierarchy as one Parquet file: a row per node, levels root first, nodes in order."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import (
    codes_from_arrow,
    keep_level_codes,
    level_codes,
    text_parts,
)
from trellis.storage.parquet import read_table, refusing_damage, write_table

_LEVELS = b"trellis.levels"


def write_hierarchy(path: Path, hierarchy: Hierarchy) -> None:
    """Columns: level (position), code, parent (position on the level above), passes_through."""
    write_table(path, hierarchy_to_table(hierarchy))


def hierarchy_to_table(hierarchy: Hierarchy) -> pa.Table:
    parts = [_level_table(hierarchy, level) for level in range(hierarchy.n_levels)]
    names = json.dumps(hierarchy.level_names)
    return pa.concat_tables(parts).replace_schema_metadata({_LEVELS: names})


def read_hierarchy(path: Path) -> Hierarchy:
    table = read_table(path)
    with refusing_damage(path):
        return hierarchy_from_table(table)


def hierarchy_from_table(table: pa.Table) -> Hierarchy:
    names = tuple(json.loads((table.schema.metadata or {})[_LEVELS]))
    level = table["level"].to_numpy()
    bounds = np.searchsorted(level, np.arange(len(names) + 1))
    if bounds[-1] != level.size:
        raise ValueError("there are nodes on a level without a name")
    texts, codes, starts, passing = [], [], [], []
    for index, (begin, end) in enumerate(pairwise(bounds)):
        part = table.slice(begin, end - begin)
        texts.append(part["code"].combine_chunks())
        codes.append(codes_from_arrow(texts[-1]))
        passing.append(part["passes_through"].to_numpy().astype(np.bool_))
        if index:
            parents = part["parent"].to_numpy()
            if not (parents[1:] >= parents[:-1]).all():
                raise ValueError("siblings are not contiguous")
            n_parents = codes[index - 1].size
            starts.append(np.searchsorted(parents, np.arange(n_parents + 1)).astype(np.int64))
    hierarchy = Hierarchy(names, tuple(codes), tuple(starts), tuple(passing))
    keep_level_codes(hierarchy, texts)
    return hierarchy


def hierarchy_digest(hierarchy: Hierarchy) -> str:
    """SHA-256 of the whole tree, independent of how it is stored."""
    digest = sha256(json.dumps(hierarchy.level_names).encode())
    for level in range(hierarchy.n_levels):
        ends, text = text_parts(level_codes(hierarchy, level))
        digest.update((ends - ends[0]).astype("<i4").tobytes())
        digest.update(text.tobytes())
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
            "code": level_codes(hierarchy, level),
            "parent": parents,
            "passes_through": hierarchy.passes_through[level],
        }
    )
