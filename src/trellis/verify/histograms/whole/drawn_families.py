"""The families of a level, of which some are drawn by chance: a forger cannot know them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from trellis.verify.files.histogram_files import Kept, kept, marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.rules import rule_cells
from trellis.verify.histograms.whole.nearness import Published

MOST_WORK = 4e8
"""Operations for one guess of what binds, added up over the families of a level."""
LEAST_WORK = 1e6
"""What a family costs however small it is."""
MOST_ENTRIES = 4e6
"""Of the matrix of all sums of one family."""


class LevelFamilies:
    """Families with something to share out, and among whom to; the root is one on its own.

    `number` is that of all, `checked` that of those that could be recomputed.
    """

    def __init__(self, run: RunFiles, index: int) -> None:
        self._run, self._index = run, index
        self.name = run.levels[index].name
        self.checked = 0
        self._counts = kept(run, run.levels[index])
        self._upper: Kept | None = None
        if index == 0:
            self._begins, self._families = np.array([0, 1]), np.zeros(1, int)
            self._possible = _possible(run)
            sizes = np.array([self._possible.size])
        else:
            above = len(run.levels[index - 1])
            self._upper = kept(run, run.levels[index - 1])
            self._cuts = np.searchsorted(self._upper.area, np.arange(above + 1))
            self._begins = np.searchsorted(run.levels[index].parent, np.arange(above + 1))
            sizes = np.diff(self._cuts)
            self._families = np.flatnonzero((sizes > 0) & (np.diff(self._begins) > 1))
        self._n_cells = sizes
        self.number = self._families.size
        self._chosen = self._families[:0]

    def draw(self) -> None:
        """As many as the work allows."""
        order = self._families.copy()
        np.random.default_rng(random.SystemRandom().getrandbits(128)).shuffle(order)
        children = np.diff(self._begins)[order].astype(np.float64)
        cells = self._n_cells[order].astype(np.float64)
        sums = children * self._answers_fixed()
        work = np.maximum(children * cells**3 + (sums + cells) ** 3, LEAST_WORK)
        entries = sums * children * cells
        fits = (work <= MOST_WORK) & (entries <= MOST_ENTRIES)
        order, work = order[fits], work[fits]
        self._chosen = order[np.cumsum(work) <= MOST_WORK]

    def _answers_fixed(self) -> int:
        """Of one child, by passes and by a total."""
        passes = self._run.plan["histogram"]["passes"] if self._index else []
        return 1 + sum(marginal(self._run.plan, name).width for name in passes)

    def limit(self, sizes: np.ndarray, most: int) -> int:
        """Leave out families until their children are of this size together; returns theirs."""
        total = np.concatenate([[0], np.cumsum(sizes)])
        ends = np.minimum(self._begins, sizes.size)
        each = total[ends[self._chosen + 1]] - total[ends[self._chosen]]
        fits = np.cumsum(each) <= most
        self._chosen = self._chosen[fits]
        return int(each[fits].sum())

    def nodes(self) -> np.ndarray:
        """All children of drawn families."""
        runs = [self._children(family) for family in self._chosen]
        return np.sort(np.concatenate([np.zeros(0, int), *runs]))

    def _children(self, family: int) -> np.ndarray:
        return np.arange(int(self._begins[family]), int(self._begins[family + 1]))

    def drawn(self) -> Iterator[Published]:
        for family in self._chosen:
            nodes = self._children(family)
            if self._upper is None:
                cells, parent = self._possible, None
            else:
                inside = slice(self._cuts[family], self._cuts[family + 1])
                cells = self._upper.cell[inside].astype(int)
                parent = self._upper.count[inside].astype(np.float64)
            yield Published(nodes, cells, parent, self._table(nodes, cells))

    def _table(self, nodes: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """What is published: nodes x cells."""
        counts = self._counts
        first, last = np.searchsorted(counts.area, [nodes[0], nodes[-1] + 1])
        place = np.full(self._run.n_cells, -1)
        place[cells] = np.arange(cells.size)
        at = place[counts.cell[first:last]]
        rows, inside = counts.area[first:last] - nodes[0], at >= 0
        out = np.zeros((nodes.size, cells.size))
        out[rows[inside], at[inside]] = counts.count[first:last][inside]
        return out


def _possible(run: RunFiles) -> np.ndarray:
    impossible = np.zeros(run.n_cells, dtype=bool)
    for rule in run.plan["histogram"]["structural_zeros"]:
        impossible |= rule_cells(run.plan, rule)
    return np.flatnonzero(~impossible)
