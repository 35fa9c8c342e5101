"""Measured levels, run by run: whole families, in the order of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.model.arrays import Floats, Ints
from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import FlowLevel, FlowTree, Nodes, runs_of_families
from trellis.storage.flows import MeasuredLevel, MeasuredRows

MOST_CHILDREN = 1 << 18
"""Children that are held and fitted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """All children of the parents `first : last`.

    `n_before` children of the level come before them, of which `expanded_before` are expanded.
    """

    first: int
    last: int
    rows: MeasuredRows
    n_before: int
    expanded_before: int

    @property
    def parents(self) -> slice:
        return slice(self.first, self.last)

    @property
    def expanded(self) -> slice:
        """Where its expanded nodes are among those of the level."""
        return slice(self.expanded_before, self.expanded_before + int(self.rows.expanded.sum()))


def measured_runs(folder: Path, plan: Plan, level: int, numbers: Ints) -> Iterator[Run]:
    """The measurements of a level; `numbers` tells how many children each parent has."""
    measured = MeasuredLevel(folder, plan, level)
    n_before = expanded_before = 0
    for first, last in runs_of_families(numbers, MOST_CHILDREN):
        rows = measured.take(int(numbers[first:last].sum()))
        yield Run(first, last, rows, n_before, expanded_before)
        n_before += rows.values.size
        expanded_before += int(rows.expanded.sum())
    measured.finish()


def positive_flows(nodes: Nodes, counts: Ints, centre: NDArray, std_error: Floats) -> FlowLevel:
    """The flows that are published, with what their margins of error rest on."""
    left = np.flatnonzero(counts > 0)
    return FlowLevel(nodes[left], counts[left], centre[left].astype(np.float64), std_error[left])


def at_least_one(
    runs: Iterable[FlowLevel], tree: FlowTree, *, is_last: bool
) -> Iterator[FlowLevel]:
    """The runs of a level; one without any flow where there are none, so that it has a form."""
    empty = True
    for run in runs:
        empty = False
        yield run
    if empty:
        place = np.empty(0, np.int32)
        nodes = Nodes(place, place, place if tree.shape.attributes and is_last else None)
        yield positive_flows(nodes, np.empty(0, np.int64), np.empty(0), np.empty(0))
