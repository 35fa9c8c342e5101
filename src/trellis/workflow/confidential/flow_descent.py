"""Measures flows from the root down, below the nodes that are left.

A level is measured below the nodes that the estimates of the level above left positive, run by run
and in threads, and is on disk before the next one begins. The noise of all levels was charged
before: `ChargedNoise` proves it. Nothing about the descent is shown or kept before it is complete,
so a run that breaks off leaves only files that are destroyed unread, and may draw again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.confidential.flows import TrueFlows, TrueLevel, true_levels
from trellis.execution.progress import tell_done
from trellis.execution.threads import map_in_order
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.flows import ABSENT, noisy_children
from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import ROOT, FlowTree, Nodes, runs_of_families
from trellis.storage.atomic import sync_tree
from trellis.storage.flows import level_file, measured_table, table_writer

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """Nodes with positive estimates, and their positions among the true ones."""

    nodes: Nodes
    counts: Ints
    positions: Ints

    def __getitem__(self, chosen: slice | NDArray) -> _Left:
        return _Left(self.nodes[chosen], self.counts[chosen], self.positions[chosen])

    @classmethod
    def joined(cls, parts: list[_Left]) -> Self:
        nodes = Nodes.joined([part.nodes for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        return cls(nodes, counts, np.concatenate([part.positions for part in parts]))


def measure_flows(
    folder: Path,
    plan: Plan,
    tree: FlowTree,
    flows: TrueFlows,
    noise: ChargedNoise,
    tie_seed: int,
    workers: int | None = None,
) -> None:
    """Noisy counts of all levels, written level by level."""
    flows = flows.in_tree_order(tree)
    total = _measure_root(folder, plan, flows, noise)
    left = _Left(ROOT, total, np.array([0 if flows.count.size else ABSENT]))[total > 0]
    for level, truth in enumerate(true_levels(flows, tree), start=1):
        parts = []
        with table_writer(level_file(folder, plan, level)) as file:
            runs = _measure_level(plan, tree, level, truth, left, noise, tie_seed, workers)
            for table, part in runs:
                file.write(table)
                parts.append(part)
        sync_tree(folder)
        left = _Left.joined(parts)
        tell_done(level / (len(plan.levels) - 1))


def _measure_root(folder: Path, plan: Plan, flows: TrueFlows, noise: ChargedNoise) -> Ints:
    root = plan.queries[0]
    value = noise.added_to(root, np.array([flows.total], dtype=np.int64))
    with table_writer(level_file(folder, plan, 0)) as file:
        file.write(measured_table(ROOT, value, root.variance, value > 0))
    return value


def _measure_level(
    plan: Plan,
    tree: FlowTree,
    level: int,
    truth: TrueLevel,
    above: _Left,
    noise: ChargedNoise,
    tie_seed: int,
    workers: int | None,
) -> Iterator[tuple[pa.Table, _Left]]:
    """Run by run what was measured, and what is left of it; at least one run, be it empty."""
    from trellis.estimate.flows.families import FamilyRule  # compiles
    from trellis.estimate.flows.runs import MOST_CHILDREN

    query = plan.queries[level]
    rule = FamilyRule.of_descent(plan, level, tie_seed)
    numbers = tree.child_numbers(level - 1, above.nodes)
    before = np.concatenate([[0], np.cumsum(numbers)])

    def measure(run: tuple[int, int]) -> tuple[pa.Table, _Left]:
        first, last = run
        parents = above[first:last]
        start, children = tree.expand(level - 1, parents.nodes)
        values, positions = noisy_children(truth, parents.positions, start, query, noise)
        counts = rule.fit(values, start, parents.counts, int(before[first]))
        table = measured_table(children, values, query.variance, counts > 0)
        return table, _Left(children, counts, positions)[np.flatnonzero(counts)]

    runs = list(runs_of_families(numbers, MOST_CHILDREN)) or [(0, 0)]
    return map_in_order(measure, runs, workers)
