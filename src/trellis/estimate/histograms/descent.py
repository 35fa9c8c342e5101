"""Whole histograms for every node, made from the root downwards, family by family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trellis.errors import Infeasible, SpecError
from trellis.estimate.histograms.bounds import FamilyBound, blocked_cells, check_cells, stack_bounds
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.family import MOST_ITERATIONS, TOLERANCE
from trellis.estimate.histograms.fixed_marginals import fix_marginal
from trellis.estimate.histograms.level_bounds import LevelBounds
from trellis.estimate.histograms.objectives import Objective
from trellis.estimate.histograms.root import round_root
from trellis.estimate.histograms.rounding import Rounder
from trellis.execution.progress import in_parts, told_from_here
from trellis.execution.threads import map_families
from trellis.model.arrays import Floats, Ints, Marks, ShortInts
from trellis.model.queries import Query
from trellis.model.rules import RuleSides
from trellis.model.sparse_counts import SparseCounts
from trellis.numerics.feasibility.feasible_below import FeasibleBelow
from trellis.numerics.histograms.least_squares.accelerated import VIOLATED
from trellis.numerics.histograms.least_squares.solver import distance, solve

Report = Callable[[str, int, int], None]
"""Told the level, the nodes done and the nodes to do."""


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
    workers: int | None = None
    report: Report | None = None

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

    def _rounder(self, level: int) -> tuple[list[Query], Rounder]:
        measured = [self.queries[name] for name in self.evidence.measured[level]]
        names = self.bounded(level)
        every = measured or list(self.queries.values())
        bounded = [self.queries[name] for name in names]
        return every, Rounder(every, bounded, self.edit_rules)

    def _root(self, objective: Objective) -> tuple[SparseCounts, float]:
        queries, rounder = self._rounder(0)
        dense = np.zeros((1, self.impossible.size), dtype=np.int64)

        def whole(bounds: Sequence[FamilyBound]) -> float:
            cells = np.flatnonzero(~self.impossible)
            blocked = blocked_cells(self.queries, bounds, cells, 1, None)
            if blocked.size:
                cells = cells[~blocked[:, 0]]
            free = np.full(cells.size, np.inf)
            x, reached = self._fit(objective, cells, free, bounds, blocked[:0], 0, 1)
            dense[:] = 0
            dense[0, cells] = round_root(queries, rounder, cells, x[:, 0], bounds, self.tie_seed)
            return reached

        with _Named(self.evidence, 0, 0):
            bounds = self.bounds[0].family(0, 1)
            reached = whole(bounds)
            held = self._held(0, 0, 1, self.below.kinds.answer(dense), None)
            if held is not None:
                reached = whole([*bounds, held])
        return SparseCounts.from_dense(dense), reached

    def _held(
        self, level: int, first: int, last: int, kinds: Ints, parent: Ints | None
    ) -> FamilyBound | None:
        """Counts by kind that siblings can share out below them; None if `kinds` are such."""
        asks = np.flatnonzero(self.below.asks[level][first:last]).tolist()
        if all(self.below.can_hold(level, first + child, kinds[child]) for child in asks):
            return None
        near = self.below.nearest(level, first, last, kinds, parent)
        if near is None:
            raise Infeasible("no whole counts keep the constraints on it and on all below it.")
        fixed = near.astype(np.float64)
        return FamilyBound(self.below.kinds.name, fixed, fixed)

    def _fit(
        self,
        objective: Objective,
        active: Ints,
        parent: Floats,
        bounds: Sequence[FamilyBound],
        blocked: Marks,
        first: int,
        last: int,
    ) -> tuple[Floats, float]:
        """Real children, cells x children, and their distance to the optimum."""
        if not active.size:  # a root whose exact total is 0
            return np.zeros((0, last - first)), 0.0
        stack = objective.prepared.tree.restrict(active)
        rows = stack_bounds(objective.prepared, bounds, stack, parent, active)
        quadratic, mu, x = objective.quadratic(stack, active, first, last)
        if mu <= 0 and np.isinf(parent).any():
            name = self.evidence.hierarchy.level_names[0]
            raise SpecError(
                f"Nothing that method topdown may use on level {name!r} tells all cells apart. "
                "Measure the detailed query there, or use gls_topdown."
            )
        found = solve(
            stack, quadratic, parent, blocked, rows, mu, self.tolerance, MOST_ITERATIONS, x
        )
        if found.status == VIOLATED:  # rounding finds out whether constraints clash
            return x, np.inf
        return x, distance(found, mu, x.size, quadratic)

    def _level(
        self, level: int, objective: Objective, parents: SparseCounts
    ) -> tuple[SparseCounts, float]:
        start = self.evidence.hierarchy.child_start[level - 1]
        done, tell = [0], told_from_here()

        def work(first: int, last: int) -> tuple[list[_Rows], float]:
            _, rounder = self._rounder(level)
            pieces, worst = [], 0.0
            for family in range(first, last):
                piece, reached = self._family(level, objective, rounder, parents, family)
                pieces.append(piece)
                worst = max(worst, reached)
                done[0] += piece.counts.size
                tell(min(done[0] / start[-1], 1.0))
                if self.report is not None:
                    self.report(self.evidence.hierarchy.level_names[level], done[0], int(start[-1]))
            return pieces, worst

        runs = map_families(work, start * self.impossible.size, self.workers)
        pieces = [piece for run, _ in runs for piece in run]
        return _joined(pieces, self.impossible.size), max(worst for _, worst in runs)

    def _family(
        self,
        level: int,
        objective: Objective,
        rounder: Rounder,
        parents: SparseCounts,
        family: int,
    ) -> tuple[_Rows, float]:
        start = self.evidence.hierarchy.child_start[level - 1]
        first, last = int(start[family]), int(start[family + 1])
        inside = slice(parents.start[family], parents.start[family + 1])
        # Copies, because the kernels would be compiled again for arrays that cannot be written.
        active, parent = parents.cell[inside].astype(np.int64), parents.count[inside].copy()
        if not active.size or last - first == 1:
            own = np.repeat(parent[:, np.newaxis], last - first, axis=1)
            return _Rows.of(active, own), 0.0
        with _Named(self.evidence, level - 1, family):
            y, reached = self._with_passes(level, objective, rounder, active, parent, first, last)
        return _Rows.of(active, y), reached

    def _with_passes(
        self,
        level: int,
        objective: Objective,
        rounder: Rounder,
        active: Ints,
        parent: Ints,
        first: int,
        last: int,
    ) -> tuple[Ints, float]:
        """Whole children of one family: cells x children, and the distance to the optimum.

        A pass sees its own marginal alone. Where what it fixed clashes with another pass, or with
        bounds on other cells, the family does without the last passes: they are no promise.
        """
        bounds = self.bounds[level].family(first, last)
        index, passes = self._first_index(level, first), self.passes

        def whole(bounds: Sequence[FamilyBound]) -> tuple[Ints, float]:
            blocked = blocked_cells(self.queries, bounds, active, last - first, None)
            check_cells(blocked, active, self.evidence.schema)
            real = parent.astype(np.float64)
            x, reached = self._fit(objective, active, real, bounds, blocked, first, last)
            return rounder.round(active, parent, x, bounds, blocked, self.tie_seed, index), reached

        while True:
            try:
                fixed = self._fixed(passes, objective, bounds, active, parent, first, last, index)
                y, reached = whole(fixed)
                kinds = self._kinds(active, y)
                held = self._held(level, first, last, kinds, kinds.sum(axis=0))
                return (y, reached) if held is None else whole([*fixed, held])
            except Infeasible:
                if not passes:
                    raise
                passes = passes[:-1]

    def _kinds(self, active: Ints, y: Ints) -> Ints:
        """Children x kinds, from cells x children."""
        found = np.zeros((self.below.kinds.n_cells, y.shape[1]), dtype=np.int64)
        np.add.at(found, self.below.kinds.cell_of[active], y)
        return found.T

    def _fixed(
        self,
        passes: Sequence[str],
        objective: Objective,
        bounds: Sequence[FamilyBound],
        active: Ints,
        parent: Ints,
        first: int,
        last: int,
        index: int,
    ) -> list[FamilyBound]:
        """The bounds of a family, and the marginals that its passes fix."""
        fixed = list(bounds)
        for name in passes:
            query = self.queries[name]
            above = np.zeros(query.n_cells, dtype=np.int64)
            np.add.at(above, query.cell_of[active], parent)
            evidence = objective.coarse(query, first, last)
            held = fix_marginal(query, *evidence, above, fixed, self.queries, self.tie_seed, index)
            fixed += [] if held is None else [held]
        return fixed

    def _first_index(self, level: int, node: int) -> int:
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


class _Named:
    """Adds the name of the family to what went wrong in it."""

    def __init__(self, evidence: HistogramEvidence, level: int, node: int) -> None:
        self._where = evidence, level, node

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Infeasible):
            evidence, level, node = self._where
            code = str(evidence.hierarchy.codes(level)[node])
            name = evidence.hierarchy.level_names[level]
            raise Infeasible(f"The family of {code!r} on level {name!r}: {error}") from error
