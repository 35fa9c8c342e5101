"""Several marginals of a histogram at once, and their transpose.

The marginals form a tree: each is added up from the smallest one that is finer than it, so that
ten of them cost little more than two. Values are stored cells x children, so that every inner loop
runs along the children. The marginals are stacked in one array with a row for each of their cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.model.arrays import Ints, Marks
from trellis.numerics.histograms.fastmath import REORDER

CELLS = -1
"""The source of a marginal that is added up from the cells themselves."""


class Stack(NamedTuple):
    """The marginals of some cells, stacked.

    Marginal g owns the rows `row_start[g]:row_start[g + 1]`. Row s of its source goes into row
    `link[link_start[g] + s]`. `full_row` says which cell of the query a row stands for.
    """

    source: Ints
    row_start: Ints
    link_start: Ints
    link: Ints
    full_row: Ints

    @property
    def n_rows(self) -> int:
        return int(self.row_start[-1])

    def rows(self, marginal: int) -> slice:
        return slice(int(self.row_start[marginal]), int(self.row_start[marginal + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class MarginalTree:
    """Marginals given by the cell that each cell of the histogram falls into.

    `order[g]` is the position, in the list it was made from, of the g-th marginal of the stack;
    `is_whole[g]` keeps all its rows even where no cell is left.
    """

    n_cells: int
    order: tuple[int, ...]
    stack: Stack
    is_whole: Marks

    @classmethod
    def of(
        cls, cell_of: Sequence[NDArray[Any]], n_cells: int, is_whole: Sequence[bool] | None = None
    ) -> MarginalTree:
        sizes = [int(cells.max()) + 1 for cells in cell_of]
        order = sorted(range(len(cell_of)), key=lambda i: -sizes[i])
        source, links = [], []
        for position, i in enumerate(order):
            best = CELLS
            for earlier in range(position - 1, -1, -1):  # the smallest first
                link = _link(cell_of[order[earlier]], cell_of[i], sizes[order[earlier]])
                if link is not None:
                    best = earlier
                    break
            else:
                link = np.asarray(cell_of[i], dtype=np.int64)
            source.append(best)
            links.append(link)
        starts = np.concatenate([[0], np.cumsum([sizes[i] for i in order])]).astype(np.int64)
        links = [link + starts[g] for g, link in enumerate(links)]
        stack = Stack(
            np.array(source, dtype=np.int64),
            starts,
            np.concatenate([[0], np.cumsum([link.size for link in links])]).astype(np.int64),
            np.concatenate(links) if links else np.zeros(0, dtype=np.int64),
            np.concatenate([np.arange(sizes[i]) for i in order]) if order else starts[:0],
        )
        whole = [bool(is_whole[i]) if is_whole else False for i in order]
        return cls(n_cells, tuple(order), stack, np.array(whole, dtype=bool))

    def restrict(self, cells: Ints) -> Stack:
        """The marginals of these cells alone, without the rows that none of them falls into."""
        return Stack(*_restrict(*self.stack, self.is_whole, cells))


def _link(fine: NDArray[Any], coarse: NDArray[Any], size: int) -> Ints | None:
    """Which coarse cell each fine cell lies in; None if some lies in two."""
    link = np.zeros(size, dtype=np.int64)
    link[fine] = coarse
    return link if (link[fine] == coarse).all() else None


@njit(nogil=True, cache=True)
def _restrict(source, row_start, link_start, link, full_row, is_whole, cells):
    n_groups = source.size
    new_row_of = np.full(row_start[-1], -1, np.int64)  # by old row
    old_row = np.empty(row_start[-1], np.int64)
    new_start = np.zeros(n_groups + 1, np.int64)
    new_link_start = np.zeros(n_groups + 1, np.int64)
    new_link = np.empty(link.size, np.int64)
    links = 0
    rows = 0
    for g in range(n_groups):
        if is_whole[g]:
            for row in range(row_start[g], row_start[g + 1]):
                new_row_of[row] = rows
                old_row[rows] = row
                rows += 1
        s = source[g]
        n_sources = cells.size if s < 0 else new_start[s + 1] - new_start[s]
        for i in range(n_sources):
            old = cells[i] if s < 0 else old_row[new_start[s] + i] - row_start[s]
            row = link[link_start[g] + old]
            if new_row_of[row] < 0:
                new_row_of[row] = rows
                old_row[rows] = row
                rows += 1
            new_link[links] = new_row_of[row]
            links += 1
        new_start[g + 1] = rows
        new_link_start[g + 1] = links
    return source, new_start, new_link_start, new_link[:links].copy(), full_row[old_row[:rows]]


@njit(nogil=True, cache=True, fastmath=REORDER)
def add_up(stack, cells, out):
    """Stack the marginals of `cells` (cells x children) into `out` (rows x children)."""
    out[:] = 0.0
    width = cells.shape[1]
    for g in range(stack.source.size):
        s = stack.source[g]
        values = cells if s < 0 else out[stack.row_start[s] : stack.row_start[s + 1]]
        for i in range(values.shape[0]):
            row = stack.link[stack.link_start[g] + i]
            for c in range(width):
                out[row, c] += values[i, c]


@njit(nogil=True, cache=True, fastmath=REORDER)
def hand_down(stack, rows, cells):
    """Add to each cell the rows it falls into: the transpose of `add_up`. Overwrites `rows`."""
    width = cells.shape[1]
    for g in range(stack.source.size - 1, -1, -1):
        s = stack.source[g]
        values = cells if s < 0 else rows[stack.row_start[s] : stack.row_start[s + 1]]
        for i in range(values.shape[0]):
            row = stack.link[stack.link_start[g] + i]
            for c in range(width):
                values[i, c] += rows[row, c]
