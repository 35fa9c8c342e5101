"""Flows from measurements alone, level by level from the root.

Every family is fitted to the total of its parent. A node can only be positive where the next level
was measured, so if a rule other than that of the descent makes one positive that has no
measurements below it, its family is fitted again with the other such nodes at zero. With the rule
of the descent that never happens, and the descent is reproduced exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trellis.errors import RunFolderError
from trellis.estimate.flows.families import FamilyRule
from trellis.estimate.flows.gls import flows_from_below
from trellis.estimate.flows.runs import Run, at_least_one, measured_runs, positive_flows
from trellis.execution.executor import map_in_order
from trellis.model.arrays import Ints
from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import ROOT, FlowLevel, FlowTree, Nodes
from trellis.storage.flows import MeasuredRows


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Nodes below which the next level was measured, with their estimates, zeros among them."""

    nodes: Nodes
    counts: Ints


def estimate_flow_levels(
    folder: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> Iterator[tuple[int, Iterator[FlowLevel]]]:
    """For each level its flows that are not zero, run by run; take the runs before going on."""
    each = flows_from_below if plan.method.looks_below else flows_by_level
    return each(folder, plan, tree, tie_seed)


def flows_by_level(
    folder: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> Iterator[tuple[int, Iterator[FlowLevel]]]:
    """Each level from its own measurements and the counts of the level above."""
    (root,) = measured_runs(folder, plan, 0, np.ones(1, dtype=np.int64))
    counts = np.maximum(root.rows.values, 0)
    frontier = Frontier(ROOT[root.rows.expanded], counts[root.rows.expanded])
    yield 0, iter([_positive(ROOT, counts, root.rows, plan.queries[0].variance)])
    for level in range(1, len(plan.levels)):
        parts: list[Frontier] = []
        yield level, _runs(folder, plan, tree, tie_seed, level, frontier, parts)
        nodes = Nodes.joined([part.nodes for part in parts])
        counts = [part.counts for part in parts] or [np.empty(0, np.int64)]
        frontier = Frontier(nodes, np.concatenate(counts))


def _runs(
    folder: Path,
    plan: Plan,
    tree: FlowTree,
    tie_seed: int,
    level: int,
    above: Frontier,
    below: list[Frontier],
) -> Iterator[FlowLevel]:
    is_last = level == len(plan.levels) - 1
    fit = _FitRun(FamilyRule.of(plan, level, tie_seed), tree, level, above, is_last)
    numbers = tree.child_numbers(level - 1, above.nodes)

    def levels() -> Iterator[FlowLevel]:
        for flows, frontier in map_in_order(fit, measured_runs(folder, plan, level, numbers)):
            below.append(frontier)
            yield flows

    return at_least_one(levels(), tree, is_last=is_last)


@dataclass(frozen=True, slots=True, eq=False)
class _FitRun:
    """Fits the children of a run of parents: the flows that are published, and those to expand."""

    rule: FamilyRule
    tree: FlowTree
    level: int
    above: Frontier
    is_last: bool

    def __call__(self, run: Run) -> tuple[FlowLevel, Frontier]:
        start, nodes = self.tree.expand(self.level - 1, self.above.nodes[run.parents])
        rows, totals = run.rows, self.above.counts[run.parents]
        counts = fit_measured(self.rule, rows, start, totals, run.n_before, is_last=self.is_last)
        kept = slice(0) if self.is_last else rows.expanded
        flows = _positive(nodes, counts, rows, self.rule.variance)
        return flows, Frontier(nodes[kept], counts[kept])


def fit_measured(
    rule: FamilyRule,
    rows: MeasuredRows,
    start: Ints,
    totals: Ints,
    first_index: int,
    *,
    is_last: bool,
) -> Ints:
    """Whole children; positive only where the next level was measured, or on the last level."""
    counts = rule.fit(rows.values, start, totals, first_index)
    if is_last or not (stray := (counts > 0) & ~rows.expanded).any():
        return counts
    family = np.unique(np.searchsorted(start, np.flatnonzero(stray), side="right") - 1)
    for f in family:
        lo, hi = int(start[f]), int(start[f + 1])
        if not rows.expanded[lo:hi].any():
            raise RunFolderError("Nothing was measured below a flow that needs it.")
        counts[lo:hi] = rule.fit_within(
            rows.expanded[lo:hi], rows.values[lo:hi], np.array([0, hi - lo]), totals[f : f + 1],
            first_index + lo,
        )  # fmt: skip
    return counts


def _positive(nodes: Nodes, counts: Ints, rows: MeasuredRows, variance: float) -> FlowLevel:
    errors = np.full(counts.size, variance**0.5)
    return positive_flows(nodes, counts, rows.values, errors)
