"""Whole numbers by area and cell, most of which are zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class SparseCounts:
    """Areas x cells in CSR form: area i has `count[start[i]:start[i+1]]` in the cells `cell[...]`.

    Cells of an area ascend; counts are positive. A histogram of thousands of cells for each of
    millions of areas is almost all zeros and is never written out.
    """

    n_cells: int
    start: NDArray[np.int64]
    cell: NDArray[np.int32]
    count: NDArray[np.int64]

    def __post_init__(self) -> None:
        start, cell, count = self.start, self.cell, self.count
        dtypes = (start.dtype, cell.dtype, count.dtype)
        if dtypes != (np.int64, np.int32, np.int64) or cell.shape != count.shape:
            raise StructureError("Sparse counts need int64 starts, int32 cells and int64 counts.")
        if not start.size or start[0] != 0 or start[-1] != cell.size or (np.diff(start) < 0).any():
            raise StructureError("The starts of sparse counts must run from 0 to their length.")
        if cell.size:
            if cell.min() < 0 or cell.max() >= self.n_cells or count.min() <= 0:
                raise StructureError("Sparse counts are positive and lie in declared cells.")
            rises = np.diff(cell) > 0
            boundary = start[1:-1][(start[1:-1] > 0) & (start[1:-1] < cell.size)] - 1
            rises[boundary] = True
            if not rises.all():
                raise StructureError("The cells of an area must ascend.")

    @property
    def n_areas(self) -> int:
        return self.start.size - 1

    @classmethod
    def from_dense(cls, dense: NDArray[np.int64]) -> SparseCounts:
        """From areas x cells; for small tables."""
        area, cell = np.nonzero(dense)
        start = np.zeros(dense.shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(area, minlength=dense.shape[0]), out=start[1:])
        return cls(dense.shape[1], start, cell.astype(np.int32), dense[area, cell])

    @classmethod
    def grouped(
        cls, n_areas: int, n_cells: int, area: NDArray, cell: NDArray, count: NDArray[np.int64]
    ) -> SparseCounts:
        """From entries in any order; those of one area and cell are added up."""
        key = area.astype(np.int64) * n_cells + cell
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if key.size else key
        sums = np.add.reduceat(count, first) if key.size else count
        present = sums > 0
        key, sums = key[first][present], sums[present]
        start = np.searchsorted(key, np.arange(n_areas + 1, dtype=np.int64) * n_cells)
        return cls(n_cells, start.astype(np.int64), (key % n_cells).astype(np.int32), sums)

    def by_level(self, hierarchy: Hierarchy) -> list[SparseCounts]:
        """Sums of these leaves on every level, root first."""
        if self.n_areas != hierarchy.size(hierarchy.leaf_level):
            raise StructureError("The counts belong to another hierarchy.")
        levels: list[SparseCounts] = [self]
        for level in reversed(range(1, hierarchy.n_levels)):
            below = levels[-1]
            area = np.repeat(hierarchy.parents(level), np.diff(below.start))
            n_areas = hierarchy.size(level - 1)
            levels.append(self.grouped(n_areas, below.n_cells, area, below.cell, below.count))
        return levels[::-1]

    def dense(self, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """A run of areas written out: areas x cells."""
        last = self.n_areas if last is None else last
        out = np.zeros((last - first, self.n_cells), dtype=np.int64)
        inside = slice(self.start[first], self.start[last])
        area = np.repeat(np.arange(last - first), np.diff(self.start[first : last + 1]))
        out[area, self.cell[inside]] = self.count[inside]
        return out

    def marginal(
        self, cell_of: NDArray[np.int32], n_groups: int, first: int = 0, last: int | None = None
    ) -> NDArray[np.int64]:
        """Sums of a run of areas by group of cells: areas x groups; cell c is in `cell_of[c]`."""
        last = self.n_areas if last is None else last
        inside = slice(self.start[first], self.start[last])
        area = np.repeat(np.arange(last - first), np.diff(self.start[first : last + 1]))
        out = np.zeros((last - first, n_groups), dtype=np.int64)
        np.add.at(out, (area, cell_of[self.cell[inside]]), self.count[inside])
        return out

    def marginal_rows(
        self,
        cell_of: NDArray[np.int32],
        n_groups: int,
        area: NDArray[np.int64],
        group: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Single entries of `marginal`, whose areas and groups ascend."""
        out = np.zeros(area.size, dtype=np.int64)
        if not area.size:
            return out
        first, last = int(area[0]), int(area[-1]) + 1
        inside = slice(self.start[first], self.start[last])
        of = np.repeat(np.arange(first, last), np.diff(self.start[first : last + 1]))
        wanted, held = area * n_groups + group, of * n_groups + cell_of[self.cell[inside]]
        at = np.minimum(np.searchsorted(wanted, held), wanted.size - 1)
        found = wanted[at] == held
        np.add.at(out, at[found], self.count[inside][found])
        return out
