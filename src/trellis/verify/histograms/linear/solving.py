"""The best linear unbiased estimates of a release of histograms, made again from its measurements.

Areas that must be empty are left out, as docs/histograms.md says. All other areas and all cells are
recomputed: up to a stated size by every contrast between cells, above it by random contrasts, which
a forger cannot know and which any change would show in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.verify.files.histogram_files import marginal, tables
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.facts import HistogramFacts
from trellis.verify.histograms.linear.components import Asked, Components, Parts, asked, subsets
from trellis.verify.histograms.linear.noisy_answers import Noisy, blocks, every_value, noisy_queries
from trellis.verify.histograms.linear.tree_gls import (
    Final,
    Measured,
    Shapes,
    Subtrees,
    downwards,
    upwards,
)

Component = tuple[int, ...]

MOST_CELLS = 1 << 22
"""Areas x cells up to which every contrast is recomputed."""
MOST_PARTS = 1 << 26
"""Areas x rows of components up to which estimates are recomputed at all."""
MOST_ATOMS = 400
MOST_ENTRIES = 1 << 25
"""Of the matrices of all shapes of subtrees."""
GREATEST_RATIO = 1e8
"""Of variances, beyond which this recomputation is less exact than what it checks."""


@dataclass(slots=True)
class Solved:
    """One component: what was measured of it by level, estimates of subtrees, and final ones."""

    levels: list[Measured]
    up: list[Subtrees]
    final: list[Final]


class Linear:
    """All components of a release; `kept` are the areas that may hold anyone, by level."""

    def __init__(self, run: RunFiles, kept: list[np.ndarray], components: Components) -> None:
        self._run, self.kept, self.components = run, kept, components
        self.queries = {q.name: asked(run.plan, q.name) for q in noisy_queries(run)}
        self.queries |= {name: asked(run.plan, name) for _, name, _ in tables(run)}
        self.shapes = Shapes(_pruned(run, kept))
        self.sets = components.all_of(list(self.queries.values()))

    def problem(self) -> str:
        """Why it is too large, or too extreme, to be solved here; nothing if it is not."""
        variances = [q.variance for q in noisy_queries(self._run) if not q.is_exact]
        if max(variances) > GREATEST_RATIO * min(variances):
            return "variances differ by too many orders of magnitude"
        atoms = [self.components.n_atoms(chosen) for chosen in self.sets]
        if max(atoms) > MOST_ATOMS or self.shapes.n_classes * max(atoms) ** 2 > MOST_ENTRIES:
            return "recodes make too many groups of cells, or the tree has too many shapes"
        if sum(self.shapes.sizes) * sum(map(self._columns, self.sets)) > MOST_PARTS:
            return "the release is too large"
        return ""

    def _columns(self, chosen: Component) -> int:
        axes = self.components.axes
        return self.components.n_atoms(chosen) * int(
            np.prod([axes[i].contrasts.shape[1] for i in chosen])
        )

    def solve(self) -> dict[Component, Solved]:
        by_level = [
            self._level(index, [q for q in noisy_queries(self._run) if q.index == index])
            for index in range(len(self._run.levels))
        ]
        exact = self._exact_totals()
        found = {}
        for chosen in self.sets:
            totals = exact if not chosen else [None] * len(by_level)
            levels = [
                self._measured(chosen, index, parts, total)
                for index, (parts, total) in enumerate(zip(by_level, totals, strict=True))
            ]
            up = upwards(self.shapes, levels)
            found[chosen] = Solved(levels, up, downwards(self.shapes, levels, up))
        return found

    def _level(self, index: int, queries: list[Noisy]) -> list[tuple[Noisy, Parts]]:
        """The noisy answers of a level by component."""
        found = []
        for query in queries:
            if query.is_exact:
                continue
            parts: dict[Component, list[np.ndarray]] = {}
            for rows, values in blocks(self._run, query):
                chosen = self.kept[index]
                inside = chosen[(chosen >= rows.start) & (chosen < rows.stop)] - rows.start
                split = self.components.split(self.queries[query.name], values[inside], self.sets)
                for component, part in split.items():
                    parts.setdefault(component, []).append(part)
            found.append((query, {c: np.concatenate(every) for c, every in parts.items()}))
        return found

    def _measured(
        self,
        chosen: Component,
        index: int,
        level: list[tuple[Noisy, Parts]],
        total: np.ndarray | None,
    ) -> Measured:
        rows = [np.zeros((0, self.components.n_atoms(chosen)))]
        variances = [np.zeros(0)]
        columns = self._columns(chosen) // self.components.n_atoms(chosen)
        values = [np.zeros((self.shapes.sizes[index], 0, columns))]
        for query, parts in level:
            if chosen in parts:
                matrix, numbers = self.components.rows(self.queries[query.name], chosen)
                rows.append(matrix)
                variances.append(query.variance * numbers)
                values.append(parts[chosen])
        return Measured(
            np.concatenate(rows), np.concatenate(variances), np.concatenate(values, axis=1), total
        )

    def _exact_totals(self) -> list[np.ndarray | None]:
        """Of every level down to the last one with exact totals."""
        run = self._run
        out: list[np.ndarray | None] = [None] * len(run.levels)
        exact = [q for q in noisy_queries(run) if q.is_exact]
        if not exact:
            return out
        deepest = max(exact, key=lambda q: q.index)
        here = every_value(run, deepest)[self.kept[deepest.index], 0].astype(np.float64)
        for index in range(deepest.index, -1, -1):
            out[index] = here
            if index:
                here = np.bincount(self.shapes.parents[index], here, self.shapes.sizes[index - 1])
        return out

    def variances(self, solved: dict[Component, Solved], index: int, query: Asked) -> np.ndarray:
        """Of the answers of a query: classes of nodes x its cells."""
        total = np.zeros(())
        for chosen in subsets(self.sets, query):
            matrix, _ = self.components.rows(query, chosen)
            covariance = solved[chosen].final[index].covariance
            of_rows = np.einsum("ra,cab,rb->cr", matrix, covariance, matrix, optimize=True)
            row, factor = self.components.cell_rows(query, chosen)
            total = total + np.maximum(of_rows, 0)[:, row] * factor
        return total


def _pruned(run: RunFiles, kept: list[np.ndarray]) -> list[np.ndarray]:
    """Parents among the areas that are kept."""
    parents = [np.zeros(1, dtype=np.int64)]
    for index in range(1, len(run.levels)):
        place = np.full(len(run.levels[index - 1]), -1)
        place[kept[index - 1]] = np.arange(kept[index - 1].size)
        parents.append(place[run.levels[index].parent[kept[index]]])
    return parents


def occupied(run: RunFiles, facts: HistogramFacts) -> list[np.ndarray] | None:
    """The areas that may hold anyone, by level; None if there are none."""
    total = marginal(run.plan, "total")
    may = facts.allowed(len(run.levels) - 1, total)[1][:, 0] > 0
    if not may.any():
        return None
    found = [np.flatnonzero(may)]
    for level in reversed(run.levels[1:]):
        found.append(np.unique(level.parent[found[-1]]))
    return found[::-1]


def solved_here(
    run: RunFiles, *, exactly: bool = False, only: list[np.ndarray] | None = None
) -> tuple[Linear, dict[Component, Solved]] | str:
    """Every estimate of a release that is small enough, or what stands in the way.

    With random contrasts above a size, unless it must be exact. `only` marks areas by level, if
    others are not asked for; those of subtrees are right where all of a subtree is marked.
    """
    kept = occupied(run, HistogramFacts(run))
    if kept is not None and only is not None:
        kept = [nodes[marks[nodes]] for nodes, marks in zip(kept, only, strict=True)]
    if kept is None or not kept[0].size:
        return "no area may hold anyone"
    names = [*(q.name for q in noisy_queries(run)), *(name for _, name, _ in tables(run))]
    names += run.plan["histogram"]["passes"]
    queries = [asked(run.plan, name) for name in dict.fromkeys(names)]
    size = sum(map(len, kept)) * run.n_cells
    if exactly and size > MOST_CELLS:
        return "the release is too large"
    rng = None if size <= MOST_CELLS else np.random.default_rng()  # seeded by the system
    shape = [len(categories) for categories in run.plan["schema"].values()]
    linear = Linear(run, kept, Components.of(shape, queries, rng))
    return linear.problem() or (linear, linear.solve())
