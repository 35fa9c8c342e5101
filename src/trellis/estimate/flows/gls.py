"""Flows that rest on all that was measured: the levels below a pair as well as its own.

Two passes over the measured part of the tree make best linear unbiased estimates (see
`trellis.numerics.flows.gls`): up, level by level from the last, then down. Estimates are not
clipped on the way up: the noise of empty pairs averages out in a sum, but not once it is made
positive.

On the way down each family is fitted to the whole count of its parent, with the estimates and
variances of the subtrees of its children. A pair below which nothing was measured has nothing that
could hold its count, so it stays at zero, as the descent left it; its own measurement counts in the
sums above it.

Whether a pair was expanded depends on its own noise, not on the noise below it. So what was
measured below is unbiased for pairs that were expanded, while their own measurements are too high
where survival was doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.estimate.flows.families import FamilyRule
from trellis.estimate.flows.runs import (
    Run,
    at_least_one,
    measured_runs,
    positive_flows,
)
from trellis.execution.executor import map_in_order
from trellis.model.arrays import Floats, Ints
from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import ROOT, FlowLevel, FlowTree, Nodes
from trellis.numerics.flows.gls import estimates_from_above, estimates_from_below

_ONE = np.ones(1, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """The nodes of a level below which the next was measured, and what was found there.

    `sums` adds up the estimates of each node's children, with variance `variances`.
    """

    nodes: Nodes
    sums: Floats
    variances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Final counts of the expanded nodes of a level, zeros among them, and their estimates."""

    counts: Ints
    centre: Floats
    variance: Floats

    def __getitem__(self, chosen: slice | NDArray) -> Settled:
        return Settled(self.counts[chosen], self.centre[chosen], self.variance[chosen])

    @classmethod
    def joined(cls, parts: list[Settled]) -> Settled:
        counts = np.concatenate([p.counts for p in parts] or [np.empty(0, np.int64)])
        centre = np.concatenate([p.centre for p in parts] or [np.empty(0)])
        return cls(counts, centre, np.concatenate([p.variance for p in parts] or [np.empty(0)]))


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """A measured tree of flows."""

    folder: Path
    plan: Plan
    tree: FlowTree

    @property
    def last(self) -> int:
        return len(self.plan.levels) - 1

    def runs(self, level: int, above: Nodes) -> Iterator[Run]:
        """A level below the expanded nodes of the one above."""
        numbers = self.tree.child_numbers(level - 1, above)
        return measured_runs(self.folder, self.plan, level, numbers)

    def root(self) -> Run:
        (run,) = measured_runs(self.folder, self.plan, 0, _ONE)
        return run

    def subtree_estimates(
        self, level: int, run: Run, below: Expanded | None
    ) -> tuple[Floats, Floats]:
        """From the measurements at and below each node of a run; on the last level, at it."""
        u, v = np.empty((2, run.rows.values.size))
        own = self.plan.queries[level].variance
        if below is None:
            return run.rows.values.astype(np.float64), np.full(u.size, own)
        sums, variances = below.sums[run.expanded], below.variances[run.expanded]
        estimates_from_below(run.rows.values, run.rows.expanded, sums, variances, own, u, v)
        return u, v


def flows_from_below(
    folder: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> Iterator[tuple[int, Iterator[FlowLevel]]]:
    """For each level its flows that are not zero, run by run; take the runs before going on."""
    measured = _Measured(folder, plan, tree)
    found = _upwards(measured)
    root = measured.root()
    u, v = measured.subtree_estimates(0, root, found[0])
    settled = Settled(np.maximum(np.rint(u), 0).astype(np.int64), u, v)
    yield 0, iter([positive_flows(ROOT, settled.counts, u, np.sqrt(v))])
    settled = settled[root.rows.expanded]
    for level in range(1, len(plan.levels)):
        parts: list[Settled] = []
        above, found[level - 1] = found[level - 1], None
        assert above is not None
        yield level, _downwards(measured, tie_seed, level, above, settled, found[level], parts)
        settled = Settled.joined(parts)


def _upwards(measured: _Measured) -> list[Expanded | None]:
    """What was found below the expanded nodes of each level; None for the last."""
    nodes = _expanded_nodes(measured)
    found: list[Expanded | None] = [None] * (measured.last + 1)
    for level in range(measured.last, 0, -1):
        above, below = nodes.pop(), found[level]
        numbers = measured.tree.child_numbers(level - 1, above)
        add_up = _AddUp(measured, level, below, numbers)
        parts = list(map_in_order(add_up, measured.runs(level, above)))
        sums, variances = (
            np.concatenate([part[i] for part in parts] or [np.empty(0)]) for i in (0, 1)
        )
        found[level - 1] = Expanded(above, sums, variances)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _AddUp:
    """Sums of the estimates of children, and their variances, for a run of parents."""

    measured: _Measured
    level: int
    below: Expanded | None
    numbers: Ints

    def __call__(self, run: Run) -> tuple[Floats, Floats]:
        u, v = self.measured.subtree_estimates(self.level, run, self.below)
        numbers = self.numbers[run.parents]
        start = np.cumsum(numbers) - numbers
        return np.add.reduceat(u, start), np.add.reduceat(v, start)


def _expanded_nodes(measured: _Measured) -> list[Nodes]:
    """Of every level but the last."""
    levels = [ROOT[measured.root().rows.expanded]]
    for level in range(1, measured.last):
        above = levels[-1]
        keep = _KeepExpanded(measured.tree, level, above)
        levels.append(Nodes.joined(list(map_in_order(keep, measured.runs(level, above)))))
    return levels


@dataclass(frozen=True, slots=True, eq=False)
class _KeepExpanded:
    """The children of a run of parents below which the next level was measured."""

    tree: FlowTree
    level: int
    above: Nodes

    def __call__(self, run: Run) -> Nodes:
        _, children = self.tree.expand(self.level - 1, self.above[run.parents])
        return children[run.rows.expanded]


def _downwards(
    measured: _Measured,
    tie_seed: int,
    level: int,
    above: Expanded,
    settled: Settled,
    below: Expanded | None,
    parts: list[Settled],
) -> Iterator[FlowLevel]:
    rule = FamilyRule.of(measured.plan, level, tie_seed)
    fit = _FitBelow(measured, rule, level, above.nodes, settled, below)

    def levels() -> Iterator[FlowLevel]:
        for flows, part in map_in_order(fit, measured.runs(level, above.nodes)):
            parts.append(part)
            yield flows

    return at_least_one(levels(), measured.tree, is_last=below is None)


@dataclass(frozen=True, slots=True, eq=False)
class _FitBelow:
    """Fits the children of a run of parents to the settled counts of these."""

    measured: _Measured
    rule: FamilyRule
    level: int
    above: Nodes
    settled: Settled
    below: Expanded | None

    def __call__(self, run: Run) -> tuple[FlowLevel, Settled]:
        is_last = self.below is None
        start, nodes = self.measured.tree.expand(self.level - 1, self.above[run.parents])
        u, v = self.measured.subtree_estimates(self.level, run, self.below)
        parents = self.settled[run.parents]
        centre, variance = np.empty((2, u.size))
        estimates_from_above(u, v, start, parents.centre, parents.variance, centre, variance)
        counts = _fit_allowed(self.rule, run, (u, v), start, parents.counts, is_last=is_last)
        flows = positive_flows(nodes, counts, centre, np.sqrt(variance))
        kept = slice(0) if is_last else run.rows.expanded
        return flows, Settled(counts, centre, variance)[kept]


def _fit_allowed(
    rule: FamilyRule,
    run: Run,
    estimates: tuple[Floats, Floats],
    start: Ints,
    totals: Ints,
    *,
    is_last: bool,
) -> Ints:
    """Whole children; positive only where the next level was measured, or on the last level."""
    u, v = estimates
    if is_last:
        return rule.fit_estimates(u, v, start, totals, run.n_before)
    where = np.flatnonzero(run.rows.expanded)
    pointer = np.searchsorted(where, start)
    if (pointer[1:] == pointer[:-1]).any():
        raise RunFolderError("Nothing was measured below a flow that needs it.")
    counts = np.zeros(u.size, dtype=np.int64)
    counts[where] = rule.fit_estimates(u[where], v[where], pointer, totals, run.expanded_before)
    return counts
