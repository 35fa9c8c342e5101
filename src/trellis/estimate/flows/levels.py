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
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.estimate.flows.families import FamilyRule
from trellis.execution.threads import map_in_order
from trellis.model.flows import ROOT, FlowLevel, FlowTree, Nodes, runs_of_families
from trellis.model.plan import Plan
from trellis.storage.flows import MeasuredLevel, MeasuredRows

Ints = NDArray[np.int64]

MOST_CHILDREN = 1 << 18
"""Children that are held and fitted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Nodes below which the next level was measured, with their estimates, zeros among them."""

    nodes: Nodes
    counts: Ints


def estimate_flow_levels(
    folder: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> Iterator[tuple[int, Iterator[FlowLevel]]]:
    """For each level its flows that are not zero, run by run; take the runs before going on."""
    measured = MeasuredLevel(folder, plan, 0)
    rows = measured.take(1)
    measured.finish()
    counts = np.maximum(rows.values, 0)
    frontier = Frontier(ROOT[rows.expanded], counts[rows.expanded])
    yield 0, iter([_positive(ROOT, counts, rows.values, plan.queries[0].variance ** 0.5)])
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
    rule = FamilyRule.of(plan, level, tie_seed)
    is_last = level == len(plan.levels) - 1
    measured = MeasuredLevel(folder, plan, level)
    numbers = tree.child_numbers(level - 1, above.nodes)
    before = np.concatenate([[0], np.cumsum(numbers)])

    def read() -> Iterator[tuple[int, int, MeasuredRows]]:
        for first, last in runs_of_families(numbers, MOST_CHILDREN):
            yield first, last, measured.take(int(before[last] - before[first]))

    def fit(run: tuple[int, int, MeasuredRows]) -> tuple[FlowLevel, Frontier]:
        first, last, rows = run
        start, nodes = tree.expand(level - 1, above.nodes[first:last])
        counts = fit_measured(
            rule, rows, start, above.counts[first:last], int(before[first]), is_last=is_last
        )
        kept = Nodes.joined([]) if is_last else nodes[rows.expanded]
        frontier = Frontier(kept, counts[rows.expanded] if len(kept) else counts[:0])
        return _positive(nodes, counts, rows.values, rule.variance**0.5), frontier

    empty = True
    for level_part, frontier in map_in_order(fit, read()):
        below.append(frontier)
        empty = False
        yield level_part
    measured.finish()
    if empty:
        cell = np.empty(0, np.int32) if tree.shape.attributes and is_last else None
        nothing = np.empty(0, np.int64)
        nodes = Nodes(np.empty(0, np.int32), np.empty(0, np.int32), cell)
        yield _positive(nodes, nothing, nothing, 0.0)


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
            raise RunFolderError("A measured flow has nothing measured below it.")
        counts[lo:hi] = rule.fit_within(
            rows.expanded[lo:hi], rows.values[lo:hi], np.array([0, hi - lo]), totals[f : f + 1],
            first_index + lo,
        )  # fmt: skip
    return counts


def _positive(nodes: Nodes, counts: Ints, values: Ints, error: float) -> FlowLevel:
    left = np.flatnonzero(counts > 0)
    centre = values[left].astype(np.float64)
    return FlowLevel(nodes[left], counts[left], centre, np.full(left.size, error))
