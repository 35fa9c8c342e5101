"""The true histograms of the leaves, sparse: most cells of most areas are empty."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
        return cls(SparseCounts.grouped(n_leaves, n_cells, leaf, cell, count))

    def by_level(self, hierarchy: Hierarchy) -> list[SparseCounts]:
        """Histograms of every level, root first."""
        return self.leaves.by_level(hierarchy)
