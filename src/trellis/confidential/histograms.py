"""The true histograms of the leaves, sparse: most cells of most areas are empty."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class TrueHistograms:
    """Leaves x cells, as tabulated from the records. Its text form shows no number."""

    leaves: SparseCounts = field(repr=False)

    @classmethod
    def of(
        cls,
        n_leaves: int,
        n_cells: int,
        leaf: NDArray[np.int64],
        cell: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> TrueHistograms:
        """From entries in any order; entries of one cell are added up."""
        return cls(_grouped(n_leaves, n_cells, leaf, cell, count))

    def by_level(self, hierarchy: Hierarchy) -> list[SparseCounts]:
        """Histograms of every level, root first."""
        if self.leaves.n_areas != hierarchy.size(hierarchy.leaf_level):
            raise StructureError("The counts belong to another hierarchy.")
        levels = [self.leaves]
        for level in reversed(range(1, hierarchy.n_levels)):
            below = levels[-1]
            area = np.repeat(hierarchy.parents(level), np.diff(below.start))
            n_areas = hierarchy.size(level - 1)
            levels.append(_grouped(n_areas, below.n_cells, area, below.cell, below.count))
        return levels[::-1]


def _grouped(
    n_areas: int, n_cells: int, area: NDArray, cell: NDArray, count: NDArray[np.int64]
) -> SparseCounts:
    """Add up entries with the same area and cell."""
    key = area.astype(np.int64) * n_cells + cell
    order = np.argsort(key, kind="stable")
    key, count = key[order], count[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if key.size else key
    sums = np.add.reduceat(count, first) if key.size else count
    present = sums > 0
    key, sums = key[first][present], sums[present]
    start = np.searchsorted(key, np.arange(n_areas + 1, dtype=np.int64) * n_cells)
    return SparseCounts(n_cells, start.astype(np.int64), (key % n_cells).astype(np.int32), sums)
