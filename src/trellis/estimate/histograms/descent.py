"""Whole histograms for every node, made from the root downwards, family by family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.family.chain import whole_family, whole_root
from trellis.estimate.histograms.family.least_squares import TOLERANCE
from trellis.estimate.histograms.family.problem import FamilyProblem, cell_names
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.estimate.histograms.level_bounds import LevelBounds
from trellis.estimate.histograms.objectives import Objective
from trellis.execution.executor import map_families
from trellis.execution.progress import in_parts, tell_more
from trellis.model.arrays import Ints, Marks, ShortInts
from trellis.model.tables.queries import Query
from trellis.model.tables.rules import RuleSides
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.numerics.feasibility.feasible_below import FeasibleBelow


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What all families of a tree share."""

    evidence: HistogramEvidence
    queries: Mapping[str, Query]
    bounds: Sequence[LevelBounds]
    below: FeasibleBelow
    impossible: Marks
    tie_seed: int
    edit_rules: tuple[RuleSides, ...] = ()
    passes: tuple[str, ...] = ()
    tolerance: float = TOLERANCE

    def bounded(self, level: int) -> list[str]:
        """Queries whose answers are bounded on a level, or may be fixed."""
        names = [*self.bounds[level].queries, *(self.passes if level else ())]
        names += [self.below.kinds.name] if self.below.asks[level].any() else []
        return list(dict.fromkeys(names))

    def run(
        self, objective_of: Callable[[int], Objective], known: Sequence[SparseCounts] = ()
    ) -> tuple[list[SparseCounts], float]:
        """Counts by level, and the greatest distance to the optimum among all families.

        Levels that are `known`, root first, are taken as they are.
        """
        fitted = list(self.levels(objective_of, known))
        worst = max((reached for _, reached in fitted), default=0.0)
        return [*known, *(counts for counts, _ in fitted)], worst

    def levels(
        self, objective_of: Callable[[int], Objective], known: Sequence[SparseCounts] = ()
    ) -> Iterator[tuple[SparseCounts, float]]:
        """Level by level below the known ones; a level is read when it is asked for."""
        above = known[-1] if known else None
        tree = self.evidence.hierarchy
        levels = range(len(known), tree.n_levels)
        for level in in_parts(levels, tree.sizes[len(known) :]):
            objective = objective_of(level)
            fitted = (
                self._root(objective) if above is None else self._level(level, objective, above)
            )
            above = fitted[0]
            yield fitted

    def _root(self, objective: Objective) -> tuple[SparseCounts, float]:
        solver = whole_root(self.tolerance, self.tie_seed, self.edit_rules, self.below)
        problem = FamilyProblem(
            objective,
            range(1),
            np.flatnonzero(~self.impossible),
            None,
            self.queries,
            self.answered(0),
            tuple(self.bounds[0].family(0, 1)),
            level=self.evidence.hierarchy.level_names[0],
        )
        with _Named(self.evidence, 0, 0):
            found = solver.solve(problem.without_blocked())
        dense = np.zeros((1, self.impossible.size), dtype=np.int64)
        dense[0, found.cells] = found.children[0]
        return SparseCounts.from_dense(dense), found.distance

    def answered(self, level: int) -> list[Query]:
        """The queries whose answers rounding keeps."""
        measured = [self.queries[name] for name in self.evidence.measured[level]]
        return measured or list(self.queries.values())

    def _level(
        self, level: int, objective: Objective, parents: SparseCounts
    ) -> tuple[SparseCounts, float]:
        start = self.evidence.hierarchy.child_start[level - 1]
        fit = _FitFamilies(self, level, objective, parents)
        runs = map_families(fit, start * self.impossible.size)
        pieces = [piece for run, _ in runs for piece in run]
        return _joined(pieces, self.impossible.size), max(worst for _, worst in runs)

    def first_index(self, level: int, node: int) -> int:
        """Ties are broken by the index of an area and cell in the whole tree."""
        above = sum(self.evidence.hierarchy.sizes[:level])
        return (above + node) * self.impossible.size


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The counts of one family in the form of `SparseCounts`."""

    counts: Ints
    """Non-zero cells by child."""
    cell: ShortInts
    count: Ints

    @classmethod
    def of(cls, active: Ints, y: Ints) -> _Rows:
        child, position = np.nonzero(y.T)
        counts = np.bincount(child, minlength=y.shape[1])
        return cls(counts, active[position].astype(np.int32), y[position, child])


def _joined(pieces: Sequence[_Rows], n_cells: int) -> SparseCounts:
    start = np.concatenate([[0], np.cumsum(np.concatenate([p.counts for p in pieces]))])
    return SparseCounts(
        n_cells,
        start.astype(np.int64),
        np.concatenate([p.cell for p in pieces]),
        np.concatenate([p.count for p in pieces]).astype(np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _FitFamilies:
    """Fits runs of families of a level to the counts of their parents."""

    descent: Descent
    level: int
    objective: Objective
    parents: SparseCounts

    def __call__(self, first: int, last: int) -> tuple[list[_Rows], float]:
        of = self.descent
        n_nodes = of.evidence.hierarchy.size(self.level)
        solver = whole_family(
            of.tolerance, of.tie_seed, of.edit_rules, of.passes, of.below, self.level
        )
        problems = _Problems(self)
        pieces, worst = [], 0.0
        for family in range(first, last):
            piece, reached = self._family(solver, problems, family)
            pieces.append(piece)
            worst = max(worst, reached)
            tell_more(piece.counts.size / n_nodes)
        return pieces, worst

    def _family(
        self, solver: FamilySolver, problems: _Problems, family: int
    ) -> tuple[_Rows, float]:
        evidence, parents = self.descent.evidence, self.parents
        start = evidence.hierarchy.child_start[self.level - 1]
        first, last = int(start[family]), int(start[family + 1])
        inside = slice(parents.start[family], parents.start[family + 1])
        # Copies, because the kernels would be compiled again for arrays that cannot be written.
        active, parent = parents.cell[inside].astype(np.int64), parents.count[inside].copy()
        if not active.size or last - first == 1:
            own = np.repeat(parent[:, np.newaxis], last - first, axis=1)
            return _Rows.of(active, own), 0.0
        with _Named(evidence, self.level - 1, family):
            found = solver.solve(problems.of(range(first, last), active, parent))
        assert found.whole is not None
        return _Rows.of(active, found.whole), found.distance


class _Problems:
    """The problems of the families of one level; what they share is made once."""

    def __init__(self, fit: _FitFamilies) -> None:
        self._fit = fit
        self._answered = fit.descent.answered(fit.level)
        self._name_of_cell = cell_names(fit.descent.evidence.schema)

    def of(self, nodes: range, active: Ints, parent: Ints) -> FamilyProblem:
        descent, level = self._fit.descent, self._fit.level
        return FamilyProblem(
            self._fit.objective,
            nodes,
            active,
            parent,
            descent.queries,
            self._answered,
            tuple(descent.bounds[level].family(nodes.start, nodes.stop)),
            first_index=descent.first_index(level, nodes.start),
            name_of_cell=self._name_of_cell,
        )


class _Named:
    """Adds the name of the family to an error in it."""

    def __init__(self, evidence: HistogramEvidence, level: int, node: int) -> None:
        self._where = evidence, level, node

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Infeasible):
            evidence, level, node = self._where
            code = str(evidence.hierarchy.codes(level)[node])
            name = evidence.hierarchy.level_names[level]
            raise Infeasible(f"The family of {code!r} on level {name!r}: {error}") from error
