"""Bounds of the areas of one level, as bounds on the counts of a family."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from trellis.verify.files.histogram_files import Marginal, marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.facts import HistogramFacts, Stated, group_of
from trellis.verify.histograms.whole.best_fit import Bounded, Family

Rows = Callable[[Marginal], "np.ndarray | None"]
"""The answer of a query that each cell of a family counts in; None if some count in several."""


def own_rows(cells: np.ndarray) -> Rows:
    """Where cells are those of the schema."""
    return lambda query: query.cell_of[cells]


def rows_within(fixed: Marginal, cells: np.ndarray) -> Rows:
    """Where cells are those of a query."""

    def rows(query: Marginal) -> np.ndarray | None:
        group = group_of(fixed, query)
        return None if group is None else group[cells]

    return rows


class LevelBounds:
    """What is stated of a level, and what follows from below it."""

    def __init__(self, run: RunFiles, facts: HistogramFacts, index: int) -> None:
        single, self._groups = facts.bounds(index)
        self._single = [Stated(name, ends, None) for name, ends in single.items()]
        every = [*self._single, *self._groups]
        self._queries = {fact.query: marginal(run.plan, fact.query) for fact in every}

    def kinds(self, cells: np.ndarray) -> np.ndarray:
        """Numbers of cells; those that no bound tells apart have the same."""
        every = [np.zeros(cells.size, int), *(q.cell_of[cells] for q in self._queries.values())]
        return np.unique(np.array(every), axis=1, return_inverse=True)[1].reshape(-1)

    def family(
        self,
        nodes: np.ndarray,
        rows: Rows,
        precision: np.ndarray,
        linear: np.ndarray,
        parent: np.ndarray | None,
        held: Bounded,
    ) -> Family:
        """The problem of some siblings under the bounds of this level, and what else is held."""
        totals = self._totals(nodes)
        if totals is not None:  # what does not vary may cost anything
            weight = np.abs(precision).max()
            precision, linear = precision + weight, linear + weight * totals[:, np.newaxis]
        bounds = self.within(nodes, rows, parent, linear.shape[1]).joined(held)
        blocked = self.blocked(nodes, rows, linear.shape[1])
        return Family(precision, linear, parent, bounds, blocked)

    def blocked(self, nodes: np.ndarray, rows: Rows, n_cells: int) -> np.ndarray:
        """Children x cells of answers that can only be 0."""
        found = np.zeros((nodes.size, n_cells), dtype=bool)
        for unit_of, (_, most), row in self._ends(nodes, rows):
            member = unit_of >= 0
            found[member] |= (most[unit_of[member]] <= 0)[:, row]
        return found

    def within(
        self, nodes: np.ndarray, rows: Rows, parent: np.ndarray | None, n_cells: int
    ) -> Bounded:
        """Those of its bounds that a family could break."""
        found: list[tuple[np.ndarray, float, float]] = []
        for unit_of, (least, most), row in self._ends(nodes, rows):
            width = least.shape[1]
            held = np.full(width, np.inf)
            if parent is not None:
                held = np.bincount(row, parent, width).astype(np.float64)
            used = np.unique(unit_of[unit_of >= 0])
            binds = ((least[used] > 0) | (most[used] < held)) & (most[used] > 0) & (held > 0)
            for unit, answer in zip(*np.nonzero(binds), strict=True):
                members = unit_of == used[unit]
                sums = members[:, np.newaxis] & (row == answer)
                if sums.any():
                    highest = min(float(most[used[unit], answer]), float(held[answer]))
                    found.append((sums, float(least[used[unit], answer]), highest))
        if not found:
            return Bounded.none((nodes.size, n_cells))
        sums, least, most = zip(*found, strict=True)
        return Bounded(np.array(sums, dtype=np.float64), np.array(least), np.array(most))

    def _totals(self, nodes: np.ndarray) -> np.ndarray | None:
        """Of the nodes, if all are exact."""
        for fact in self._single:
            least, most = fact.ends[0][nodes], fact.ends[1][nodes]
            if fact.query == "total" and (least == most).all():
                return least[:, 0]
        return None

    def _ends(
        self, nodes: np.ndarray, rows: Rows
    ) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]]:
        """The unit of each node, -1 for none; ends by unit; the answer of each cell."""
        for fact in [*self._single, *self._groups]:
            row = rows(self._queries[fact.query])
            if row is not None:
                unit_of = nodes if fact.unit_of is None else fact.unit_of[nodes]
                yield unit_of, fact.ends, row


def fixed(rows: np.ndarray, published: np.ndarray) -> Bounded:
    """Every child's answers to a query are the published ones; `rows` are the answers of cells."""
    n_children, n_cells = published.shape
    used = np.unique(rows)
    sums = np.zeros((n_children, used.size, n_children, n_cells))
    for child in range(n_children):
        sums[child, :, child] = used[:, np.newaxis] == rows
    flat = sums.reshape(-1, n_children, n_cells)
    answers = np.einsum("rcj,cj->r", flat, published, optimize=True)
    return Bounded(flat, answers, answers)
