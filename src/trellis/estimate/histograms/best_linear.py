r"""Best linear unbiased estimates of histograms on a tree, in two passes over the evidence.

With the covariances of `tree_covariances`, Q+ z the answers z spread evenly over their cells and
x_E what is known exactly,

    up:    u = x_E + sum_q P (Q'Q / variance) (Q+ z - x_E) + P J_S (S - x_E),    S = sum_c u_c,
    down:  n_c = u_c + P_c J_S (n_p - S)                    (root: n = u; an only child: n_p).

All operators here are gains, with eigenvalues between 0 and 1. P times the sum of Q'z / variance
would be the same, but where variances differ by many orders of magnitude, most digits would cancel.

All leaves have the same P, so that S over leaves follows from the sums of their answers: the first
pass adds up answers by family, and nothing of the size of leaves x cells is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.objectives import OwnMeasurements
from trellis.execution.executor import map_families
from trellis.execution.tasks import Fill
from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.algebra.subspaces import Blocks
from trellis.numerics.histograms.tree_covariances import TreeCovariances, child_gains

CELLS_AT_ONCE = 1 << 20
"""Answers of a query that are read at once: 8 MB."""


def runs(start: Ints, first: int, last: int, n_cells: int) -> list[tuple[int, int]]:
    """Cut families first..last into runs with about `CELLS_AT_ONCE` cells of children each."""
    cuts, begin = [], first
    for family in range(first, last):
        if (start[family + 1] - start[begin]) * n_cells > CELLS_AT_ONCE and family > begin:
            cuts.append((begin, family))
            begin = family
    return [*cuts, (begin, last)] if begin < last else cuts


class Level:
    """The operators of one level."""

    def __init__(
        self, evidence: HistogramEvidence, level: int, covariances: TreeCovariances
    ) -> None:
        algebra, up, here = covariances.algebra, covariances.up[level], covariances.levels[level]
        self._algebra, self._evidence, self._level = algebra, evidence, level
        self.own = OwnMeasurements(evidence, level, covariances.queries, ())
        self.class_of = up.class_of
        self._is_nested = covariances.is_nested
        self._noisy = [covariances.queries[name] for name in self.own.noisy]
        self._gains = []
        for name, query in zip(self.own.noisy, self._noisy, strict=True):
            variance = covariances.measured[level][name]
            spread = algebra.spread(query)
            gram = algebra.gram(query)
            gain = [p @ (q / variance) for p, q in zip(up.covariance, gram, strict=True)]
            self._gains.append((spread, algebra.written(gain, spread.kept_sets)))
        from_children = up.children_precision
        self._children_gain = (
            None
            if from_children is None
            else algebra.written([p @ j for p, j in zip(up.covariance, from_children, strict=True)])
        )
        self._known_gain = None
        if any(e.any() for e in here.exact):
            below = from_children or [np.zeros_like(p) for p in up.covariance]
            parts = zip(up.covariance, here.own, below, strict=True)
            self._known_gain = algebra.written([p @ (own + j) for p, own, j in parts])
        exact = {n: covariances.queries[n] for n, v in evidence.measured[level].items() if v == 0}
        self._exact = _exact_readers(algebra, exact)
        inherited = [e.copy() for e in here.exact]
        for query in exact.values():
            for left, support in zip(inherited, algebra.support(query), strict=True):
                left &= ~support
        self._inherited = (
            algebra.written([np.diag(e.astype(float))[np.newaxis] for e in inherited])
            if any(e.any() for e in inherited)
            else None
        )

    def exact_answers(self, first: int, last: int) -> dict[str, Floats]:
        return {
            name: self._evidence.read(self._level, name, first, last).astype(np.float64)
            for name in self._exact
        }

    def known(
        self, exact: Mapping[str, Floats], sums: Floats | None, n_nodes: int
    ) -> Floats | None:
        """x_E of some nodes: cells x nodes; None if nothing is exact."""
        if self._known_gain is None:
            return None
        out = np.zeros((self._evidence.schema.n_cells, n_nodes))
        zero = np.zeros(n_nodes, dtype=np.int64)
        for name, (query, reader) in self._exact.items():
            spread = np.ascontiguousarray(exact[name][:, query.cell_of].T)
            out += self._algebra.apply(reader, zero, spread)
        if self._inherited is not None and sums is not None:
            out += self._algebra.apply(self._inherited, zero, sums)
        return out

    def estimate(
        self,
        classes: Ints,
        answers: Sequence[Floats],
        known: Floats | None,
        sums: Floats | None,
    ) -> Floats:
        """Subtree estimates u from noisy answers, x_E and S: cells x nodes."""
        u = self._gained(classes, answers, sums)
        if known is not None and self._known_gain is not None:
            u += known - self._algebra.apply(self._known_gain, classes, known)
        if not self._is_nested:
            # Gains between coordinates are less exact. Applied to what u leaves unexplained, their
            # errors are in proportion to the noise, not to the counts.
            left = [
                z - answer_columns(query, u) for z, query in zip(answers, self._noisy, strict=True)
            ]
            u += self._gained(classes, left, None if sums is None else sums - u)
        return u

    def _gained(self, classes: Ints, answers: Sequence[Floats], sums: Floats | None) -> Floats:
        out = self._algebra.add_gains(self._gains, classes, answers)
        if sums is not None and self._children_gain is not None:
            out += self._algebra.apply(self._children_gain, classes, sums)
        return out


def _exact_readers(algebra: Algebra, exact: Mapping[str, Query]) -> dict[str, tuple[Query, Floats]]:
    """For each exact query the operator that takes Q'z to the coordinates it adds to the others."""
    readers, seen = {}, [np.zeros(block.shape[1], dtype=bool) for block in _sizes(algebra)]
    for name, query in exact.items():
        blocks = []
        for i, (gram, inside) in enumerate(
            zip(algebra.gram(query), algebra.support(query), strict=True)
        ):
            at = np.flatnonzero(inside)
            block = np.zeros_like(gram)
            block[:, at[:, np.newaxis], at] = np.linalg.inv(gram[:, at[:, np.newaxis], at])
            block[:, seen[i]] = 0.0
            seen[i] |= inside
            blocks.append(block)
        readers[name] = (query, algebra.written(blocks))
    return readers


def _sizes(algebra: Algebra) -> Blocks:
    widths = [
        int(np.prod([axis.n_atoms for i, axis in enumerate(algebra.axes) if i not in subspace]))
        for subspace in algebra.subspaces
    ]
    return [np.zeros((1, width, width)) for width in widths]


class BestLinear:
    """Estimates of the subtrees of all inner nodes, and the final ones of any run of nodes."""

    def __init__(self, evidence: HistogramEvidence, covariances: TreeCovariances) -> None:
        self.covariances = covariances
        self.levels = [Level(evidence, i, covariances) for i in range(evidence.hierarchy.n_levels)]
        self._evidence = evidence
        n_levels = evidence.hierarchy.n_levels
        self.subtree: list[Floats | None] = [None] * n_levels
        self.sums: list[Floats | None] = [None] * n_levels
        if n_levels > 1:
            self.sums[-2] = self._leaf_sums()
        else:
            self.subtree[0] = self.leaves(0, 1)
        for level in reversed(range(n_levels - 1)):
            self._estimate_level(level)
        self._child_gains = {}
        for level in range(1, n_levels):
            class_of, blocks = child_gains(evidence.hierarchy, covariances.up, level)
            self._child_gains[level] = class_of, covariances.algebra.written(blocks)

    def _leaf_sums(self) -> Floats:
        """S of all parents of leaves: cells x parents."""
        start, n_cells = self._evidence.hierarchy.child_start[-1], self._evidence.schema.n_cells
        out = np.empty((n_cells, start.size - 1))
        map_families(_LeafSums(self.levels[-1], start), start * n_cells, [Fill(out, axis=1)])
        return out

    def _estimate_level(self, level: int) -> None:
        operators, sums = self.levels[level], self.sums[level]
        assert sums is not None
        u = self.subtree[level] = np.empty_like(sums)
        n_cells = self._evidence.schema.n_cells
        step = max(1, CELLS_AT_ONCE // n_cells)
        for first in range(0, u.shape[1], step):
            last = min(first + step, u.shape[1])
            part = np.ascontiguousarray(sums[:, first:last])
            answers = operators.own.answers(first, last)
            known = operators.known(operators.exact_answers(first, last), part, last - first)
            classes = operators.class_of[first:last]
            u[:, first:last] = operators.estimate(classes, answers, known, part)
        if level:
            start = self._evidence.hierarchy.child_start[level - 1]
            self.sums[level - 1] = np.add.reduceat(u, start[:-1], axis=1)

    def leaves(self, first: int, last: int) -> Floats:
        """The estimates u of a run of leaves, read again: cells x leaves."""
        leaf = self.levels[-1]
        answers = leaf.own.answers(first, last)
        known = leaf.known(leaf.exact_answers(first, last), None, last - first)
        return leaf.estimate(leaf.class_of[first:last], answers, known, None)

    def subtree_of(self, level: int, first: int, last: int) -> Floats:
        stored = self.subtree[level]
        return self.leaves(first, last) if stored is None else stored[:, first:last]

    def final(self, level: int, above: Floats, first: int, last: int) -> Floats:
        """The final n of the children of parents first..last of level - 1, whose n are `above`."""
        start = self._evidence.hierarchy.child_start[level - 1]
        sums = self.sums[level - 1]
        assert sums is not None
        begin, end = int(start[first]), int(start[last])
        counts = np.diff(start[first : last + 1])
        apart = np.repeat(above - sums[:, first:last], counts, axis=1)
        class_of, gain = self._child_gains[level]
        n = self.subtree_of(level, begin, end)
        n = n + self.covariances.algebra.apply(gain, class_of[begin:end], apart)
        lone = counts == 1
        n[:, (start[first:last] - begin)[lone]] = above[:, lone]
        return n


@dataclass(frozen=True, slots=True, eq=False)
class _LeafSums:
    """Estimates of the sums of leaves, for runs of their parents: cells x parents."""

    leaf: Level
    start: Ints

    def __call__(self, out: Floats, first: int, last: int) -> None:
        leaf, start = self.leaf, self.start
        for begin, end in runs(start, first, last, out.shape[0]):
            nodes = (int(start[begin]), int(start[end]))
            cuts = start[begin:end] - start[begin]
            answers = [np.add.reduceat(z, cuts, axis=0) for z in leaf.own.answers(*nodes)]
            exact = {
                name: np.add.reduceat(z, cuts, axis=0)
                for name, z in leaf.exact_answers(*nodes).items()
            }
            classes = np.zeros(end - begin, dtype=np.int64)
            known = leaf.known(exact, None, end - begin)
            out[:, begin:end] = leaf.estimate(classes, answers, known, None)


def answer_columns(query: Query, cells: Floats) -> Floats:
    """The query's answers for cells x nodes: nodes x query cells."""
    order = np.argsort(query.cell_of, kind="stable")
    firsts = np.searchsorted(query.cell_of[order], np.arange(query.n_cells))
    return np.add.reduceat(cells[order], firsts, axis=0).T
