"""What the children of a family are fitted to: their own measurements, or their subtrees'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np

from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.queries import PreparedQueries, coarsened, separates_cells
from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.least_squares.objective import (
    BY_ROW,
    UNWEIGHTED,
    Quadratic,
    StiffObjective,
)
from trellis.numerics.histograms.least_squares.stiff_directions import STIFF, Multipliers
from trellis.numerics.histograms.least_squares.stiff_rows import cut_stiff_rows
from trellis.numerics.histograms.least_squares.stiff_subtrees import StiffPrecisions, StiffSubtrees
from trellis.numerics.histograms.marginals import MarginalTree, Stack
from trellis.numerics.histograms.tree_covariances import LevelPrecision, LevelSubtrees


class Objective(Protocol):
    """The quadratic that the children `first:last` of one parent are fitted to."""

    @property
    def prepared(self) -> PreparedQueries: ...

    def quadratic(
        self, stack: Stack, active: Ints, first: int, last: int
    ) -> tuple[Quadratic | StiffObjective, float, Floats]:
        """The objective on some cells, a bound of its least eigenvalue, and where to start."""
        ...


@runtime_checkable
class CoarsenedObjective(Objective, Protocol):
    """An objective of all cells, from which that of a marginal can be made."""

    def coarse(self, query: Query, first: int, last: int) -> tuple[Floats, Floats]:
        """What is known of a marginal on its own: see `family.fixed_marginals`."""
        ...


def weighted_queries(
    prepared: PreparedQueries,
    active: Ints,
    stack: Stack,
    values: Sequence[Floats],
    weights: Sequence[Floats],
    n_children: int,
) -> tuple[Quadratic | StiffObjective, float, Floats]:
    """The objective of measured queries, its least eigenvalue at least, and where to start.

    `values` and `weights` (broadcastable to children x cells of the query) belong to the first
    queries of `prepared`.
    """
    shape = (active.size, n_children)
    diagonal, cells_measured = np.zeros(shape), np.zeros(shape)
    rows_measured = np.zeros((stack.n_rows, n_children))
    row_weight = np.zeros_like(rows_measured)
    for i, (z, w) in enumerate(zip(values, weights, strict=True)):
        query = prepared.queries[i]
        w = np.broadcast_to(w, z.shape)
        if separates_cells(query):
            cells = query.cell_of[active]
            diagonal += w[:, cells].T
            cells_measured += (w * z)[:, cells].T
        else:
            place = stack.rows(prepared.marginal_of[i])
            cells = stack.full_row[place]
            row_weight[place] += w[:, cells].T
            rows_measured[place] += (w * z)[:, cells].T
    mu = float(diagonal.min())
    x = cells_measured / np.where(diagonal > 0, diagonal, 1.0)
    rows = rows_measured / np.where(row_weight > 0, row_weight, 1.0)
    n_groups = stack.source.size
    quadratic = Quadratic(
        diagonal,
        cells_measured,
        row_weight,
        np.zeros((0, n_children)),
        np.zeros(n_groups, dtype=np.int64),
        np.full(n_groups, BY_ROW),
    )
    return cut_stiff_rows(stack, quadratic, mu, rows, x), mu, x.copy()


def coarse_information(
    query: Query,
    measured: Sequence[Query],
    values: Sequence[Floats],
    weights: Sequence[Floats],
    n_children: int,
) -> tuple[Floats, Floats]:
    """W and b of the measured queries that are no finer than `query`.

    `values` are children x cells, `weights` broadcast to them.
    """
    precision = np.zeros((query.n_cells, query.n_cells, n_children))
    linear = np.zeros((query.n_cells, n_children))
    for other, z, given in zip(measured, values, weights, strict=True):
        if (coarse := coarsened(other, query)) is not None:
            w, cell_of = np.broadcast_to(given, z.shape), coarse.cell_of
            same = cell_of[:, np.newaxis] == cell_of
            precision += same[:, :, np.newaxis] * w[:, cell_of].T
            linear += (w * z)[:, cell_of].T
    return precision, linear


class GivenAnswers:
    """Weighted least squares on answers that are given, query by query: children x cells."""

    def __init__(
        self, prepared: PreparedQueries, values: Sequence[Floats], weights: Sequence[Floats]
    ) -> None:
        self.prepared = prepared
        self._values, self._weights = values, weights

    def quadratic(
        self, stack: Stack, active: Ints, first: int, last: int
    ) -> tuple[Quadratic | StiffObjective, float, Floats]:
        return weighted_queries(
            self.prepared, active, stack, self._values, self._weights, last - first
        )

    def coarse(self, query: Query, first: int, last: int) -> tuple[Floats, Floats]:
        measured = self.prepared.queries[: len(self._values)]
        return coarse_information(query, measured, self._values, self._weights, last - first)


class OwnMeasurements:
    """Weighted least squares on what was measured on the children themselves."""

    def __init__(
        self,
        evidence: HistogramEvidence,
        level: int,
        queries: Mapping[str, Query],
        bounded: Sequence[str],
    ) -> None:
        self._evidence, self._level = evidence, level
        noisy = {n: v for n, v in evidence.measured[level].items() if 0 < v < inf}
        self._weights = {name: 1 / variance for name, variance in noisy.items()}
        names = [*noisy, *(name for name in dict.fromkeys(bounded) if name not in noisy)]
        self.prepared = PreparedQueries.of(
            [queries[name] for name in names], evidence.schema.n_cells, bounded
        )

    @property
    def noisy(self) -> tuple[str, ...]:
        """The queries that `answers` has."""
        return tuple(self._weights)

    def answers(self, first: int, last: int) -> list[Floats]:
        """The noisy answers of a run of nodes, query by query."""
        return [
            self._evidence.read(self._level, name, first, last).astype(np.float64)
            for name in self._weights
        ]

    def quadratic(
        self, stack: Stack, active: Ints, first: int, last: int
    ) -> tuple[Quadratic | StiffObjective, float, Floats]:
        weights = [np.full((1, 1), weight) for weight in self._weights.values()]
        return weighted_queries(
            self.prepared, active, stack, self.answers(first, last), weights, last - first
        )

    def coarse(self, query: Query, first: int, last: int) -> tuple[Floats, Floats]:
        weights = [np.full((1, 1), weight) for weight in self._weights.values()]
        measured = self.prepared.queries[: len(weights)]
        answers = self.answers(first, last)
        return coarse_information(query, measured, answers, weights, last - first)


class SubtreeEstimates:
    """The estimates u of the children's subtrees, weighted by their precisions J.

    Minimises 1/2 (x - u)' J (x - u). What is known exactly has no precision and is a constraint;
    a little weight there changes no optimum and keeps the least eigenvalue away from 0. Where J is
    far stiffer in some directions than in others, they are cut: see `solver`.
    """

    def __init__(
        self,
        algebra: Algebra,
        here: LevelPrecision,
        up: LevelSubtrees,
        estimates: Floats,
        bounded: Sequence[Query],
    ) -> None:
        least, greatest = _extremes(up)
        self._stiff = None
        if greatest > STIFF * least:
            self._stiff = StiffPrecisions.of(algebra, up.covariance, here.free, here.exact)
            self._written, self._least = self._stiff.written["weigh"], self._stiff.least
        else:
            blocks = [
                block + np.where(np.diag(exact), least, 0.0)
                for block, exact in zip(up.precision, here.exact, strict=True)
            ]
            self._written = algebra.written(blocks)
            self._least = np.maximum(algebra.least_eigenvalue(blocks), 0.0)
        self._covariance = algebra.written(up.covariance)
        self._class_of = up.class_of
        self._algebra = algebra
        self._estimates = estimates
        atoms, starts, self._whole = algebra.layout()
        # The bounded queries follow the algebra's own marginals and carry no weight.
        own = algebra.tree
        n_own = len(own.order)
        maps = [_cells_of(own, g) for g in range(n_own)] + [q.cell_of for q in bounded]
        tree = MarginalTree.of(
            maps, own.n_cells, [bool(w) for w in own.is_whole] + [False] * len(bounded)
        )
        place = {position: g for g, position in enumerate(tree.order)}
        self.prepared = PreparedQueries(
            tuple(bounded), tree, tuple(place[n_own + i] for i in range(len(bounded)))
        )
        self._atoms = np.full(len(maps), UNWEIGHTED)
        self._starts = np.zeros(len(maps), dtype=np.int64)
        for g in range(n_own):
            self._atoms[place[g]] = atoms[g]
            self._starts[place[g]] = starts[g]

    def quadratic(
        self,
        stack: Stack,  # noqa: ARG002 - part of the protocol
        active: Ints,
        first: int,
        last: int,
    ) -> tuple[Quadratic | StiffObjective, float, Floats]:
        classes = self._class_of[first:last]
        u = np.ascontiguousarray(self._estimates[:, first:last])
        mu, start = float(self._least[classes].min()), np.ascontiguousarray(u[active])
        whole = self._weighted(self._written, classes, u, active)
        if self._stiff is None:
            return whole, mu, start
        cut = self._weighted(self._stiff.cut, classes, u, active)
        space = StiffSubtrees(self._stiff, classes, active)
        return StiffObjective(whole, cut, Multipliers(space, u)), mu, start

    def _weighted(self, written: Floats, classes: Ints, u: Floats, active: Ints) -> Quadratic:
        linear = self._algebra.apply(written, classes, u)[active]
        mix = np.ascontiguousarray(written[:, classes])
        diagonal = np.zeros(linear.shape)
        if self._whole >= 0:
            diagonal += mix[self._whole]
        rows = np.zeros((0, u.shape[1]))
        return Quadratic(diagonal, linear, rows, mix, self._starts, self._atoms)

    def coarse(self, query: Query, first: int, last: int) -> tuple[Floats, Floats]:
        k = query.n_cells
        spread = (query.cell_of[:, np.newaxis] == np.arange(k)).astype(np.float64)
        classes, child_class = np.unique(self._class_of[first:last], return_inverse=True)
        precision = np.empty((k, k, classes.size))
        for i, which in enumerate(classes):
            column = np.full(k, which)
            covariance = spread.T @ self._algebra.apply(self._covariance, column, spread)
            precision[:, :, i] = _pseudo_inverse(covariance)
        precision = precision[:, :, child_class]
        answer = spread.T @ self._estimates[:, first:last]
        return precision, np.einsum("abc,bc->ac", precision, answer)


def _pseudo_inverse(covariance: Floats) -> Floats:
    """The inverse; where nothing varies, a constraint decides, and any weight will do."""
    values, vectors = np.linalg.eigh(covariance)
    varies = values > 1e-9 * max(values[-1], 1e-300)
    inverse = np.where(varies, 1 / np.where(varies, values, 1.0), 0.0)
    inverse[~varies] = inverse[varies].min() if varies.any() else 1.0
    return (vectors * inverse) @ vectors.T


def _extremes(up: LevelSubtrees) -> tuple[float, float]:
    """The least and the greatest precision, other than 0."""
    widest = max(float(np.linalg.eigvalsh(block)[:, -1].max()) for block in up.covariance)
    greatest = max(float(np.linalg.eigvalsh(block)[:, -1].max()) for block in up.precision)
    return (1 / widest, greatest) if widest > 0 else (1.0, 1.0)


def _cells_of(tree: MarginalTree, marginal: int) -> Ints:
    """The row within its marginal of each cell of the histogram."""
    stack = tree.stack
    path = [marginal]
    while stack.source[path[-1]] >= 0:
        path.append(int(stack.source[path[-1]]))
    rows = np.arange(tree.n_cells)
    for g in reversed(path):
        rows = stack.link[stack.link_start[g] + rows] - stack.row_start[g]
    return rows
