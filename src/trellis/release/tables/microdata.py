"""Microdata: one row per record, made from the published histograms of the leaves.

    release/microdata.parquet      one column per level (the area's code), one per attribute

Whoever counts the rows gets the published tables, all of them. The rows are made from noisy
counts; no row is a real person's record.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.model.results.histogram_estimates import HistogramEstimates
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

ROWS_AT_ONCE = 1 << 20

_TEXT = pa.dictionary(pa.int32(), pa.string())


def write_microdata(path: Path, estimates: HistogramEstimates) -> None:
    """Leaves in the order of the hierarchy, cells in the order of the schema."""
    hierarchy, schema, leaves = estimates.hierarchy, estimates.schema, estimates.counts[-1]
    ancestors = leaf_ancestors(hierarchy)
    codes = [level_codes(hierarchy, level) for level in range(hierarchy.n_levels)]
    categories = [pa.array(values, pa.string()) for values in schema.categories]
    names = [*hierarchy.level_names, *schema.names]
    ends = np.cumsum(leaves.count)
    n_rows = int(ends[-1]) if ends.size else 0
    leaf_of = np.repeat(np.arange(leaves.n_areas), np.diff(leaves.start))
    with pq.ParquetWriter(path, pa.schema([(n, _TEXT) for n in names]), compression="zstd") as file:
        for begin in range(0, max(n_rows, 1), ROWS_AT_ONCE):
            end = min(begin + ROWS_AT_ONCE, n_rows)
            entry = np.searchsorted(ends, np.arange(begin, end), side="right")
            leaf, cell = leaf_of[entry], leaves.cell[entry]
            columns = [
                _coded(ancestors[level][leaf], codes[level], hierarchy.passes_through[level])
                for level in range(hierarchy.n_levels)
            ]
            columns += [
                pa.DictionaryArray.from_arrays(pa.array(position.astype(np.int32)), values)
                for position, values in zip(
                    np.unravel_index(cell, schema.shape), categories, strict=True
                )
            ]
            file.write_table(pa.Table.from_arrays(columns, names=names))


def _coded(area: NDArray[np.int64], codes: pa.Array, passing: NDArray[np.bool_]) -> pa.Array:
    """Codes of areas; empty where a leaf ended further up."""
    empty = passing[area] if passing.any() else None
    index = pa.array(area.astype(np.int32), mask=empty)
    return pa.DictionaryArray.from_arrays(index, codes)


def leaf_ancestors(hierarchy: Hierarchy) -> list[NDArray[np.int64]]:
    """For each level, the area that each leaf lies in."""
    ancestors = [np.arange(hierarchy.size(hierarchy.leaf_level))]
    for level in reversed(range(1, hierarchy.n_levels)):
        ancestors.append(hierarchy.parents(level)[ancestors[-1]])
    return ancestors[::-1]
