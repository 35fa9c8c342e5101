"""Which rows of a query, area by area and cell by cell, are measured on one level."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.sparse_counts import SparseCounts

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EveryRow:
    """All cells of all areas, cells fastest."""

    n_areas: int
    n_cells: int

    @property
    def n_rows(self) -> int:
        return self.n_areas * self.n_cells

    def of_areas(self, first: int, last: int) -> tuple[int, int]:
        """The first row of a run of areas, and the one after their last."""
        return first * self.n_cells, last * self.n_cells

    def written_out(self, first: int, last: int, values: IntArray) -> IntArray:
        """The rows of a run of areas as areas x cells."""
        return values.reshape(last - first, self.n_cells)


@dataclass(frozen=True, slots=True, eq=False)
class UsedRows:
    """The rows that fitting families to their parents reads, areas and cells ascending.

    A family is fitted in the cells that its parent holds. So of each child the rows are used that
    contain such a cell, and none of an only child, which copies its parent, or below an empty
    parent. Family f has the areas `families[f]:families[f+1]`, each with the rows
    `cell[start[f]:start[f+1]]`.
    """

    n_cells: int
    families: IntArray
    start: IntArray
    cell: NDArray[np.int32]
    family_of: IntArray = field(init=False)
    row_start: IntArray = field(init=False)

    def __post_init__(self) -> None:
        if self.start.shape != self.families.shape or self.start[-1] != self.cell.size:
            raise StructureError("Used rows need the cells of each family.")
        family = np.repeat(np.arange(self.start.size - 1), np.diff(self.start))
        key = family * self.n_cells + self.cell
        # A row that stood here twice would be measured twice, which no one has paid for.
        if ((self.cell < 0) | (self.cell >= self.n_cells)).any() or (np.diff(key) <= 0).any():
            raise StructureError("Each row is used once, and belongs to a cell of its query.")
        sizes = np.diff(self.families)
        family_of = np.repeat(np.arange(sizes.size), sizes)
        before = np.concatenate([[0], np.cumsum(np.diff(self.start)[family_of])])
        object.__setattr__(self, "family_of", family_of)
        object.__setattr__(self, "row_start", before.astype(np.int64))

    @classmethod
    def below(
        cls, parents: SparseCounts, families: IntArray, cell_of: NDArray[np.int32], n_cells: int
    ) -> UsedRows:
        """Of a query that puts the cell c into `cell_of[c]`, below the whole counts of parents."""
        parent = np.repeat(np.arange(parents.n_areas), np.diff(parents.start))
        several = np.diff(families)[parent] > 1
        key = np.unique(parent[several] * n_cells + cell_of[parents.cell[several]])
        start = np.searchsorted(key, np.arange(parents.n_areas + 1) * n_cells)
        return cls(n_cells, families, start.astype(np.int64), (key % n_cells).astype(np.int32))

    @property
    def n_rows(self) -> int:
        return int(self.row_start[-1])

    def of_areas(self, first: int, last: int) -> tuple[int, int]:
        """The first row of a run of areas, and the one after their last."""
        return int(self.row_start[first]), int(self.row_start[last])

    def located(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Area and cell of a run of rows."""
        areas = slice(
            np.searchsorted(self.row_start, first, side="right") - 1,
            np.searchsorted(self.row_start, last, side="left"),
        )
        ends = np.clip(self.row_start[areas.start : areas.stop + 1], first, last)
        area = np.repeat(np.arange(areas.start, areas.stop), np.diff(ends))
        within = np.arange(first, last) - self.row_start[area]
        return area, self.cell[self.start[self.family_of[area]] + within].astype(np.int64)

    def written_out(self, first: int, last: int, values: IntArray) -> IntArray:
        """The rows of a run of areas as areas x cells; unused rows hold 0."""
        area, cell = self.located(*self.of_areas(first, last))
        out = np.zeros((last - first, self.n_cells), dtype=np.int64)
        out[area - first, cell] = values
        return out


MeasuredRows = EveryRow | UsedRows
