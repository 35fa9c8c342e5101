"""Compares released flows with the true ones. The result is confidential."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.flows import TrueFlows
from trellis.confidential.metrics import COUNTS, LevelErrors, level_errors
from trellis.model.results.exact_totals import flow_range
from trellis.model.trees.flows import FlowTree, Nodes
from trellis.release.tables.flow_ranges import lifted
from trellis.release.tables.intervals import interval, interval_factor
from trellis.spec.flows import FlowsSpec
from trellis.storage.flows import read_flow_level
from trellis.workflow.evaluation.compared_tables import require_same_totals
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import FlowFacts
from trellis.workflow.public.run_folder import RunFolder

Ints = NDArray[np.int64]
PreparedFlows = Prepared[FlowsSpec, FlowFacts]


def compare(
    folder: RunFolder, prepared: PreparedFlows, flows: TrueFlows
) -> tuple[LevelErrors, ...]:
    """Errors of every level, over the pairs that are listed or have a trip.

    All others are zero and published as zero: counted in, they would only hide the errors.
    """
    plan, found = prepared.plan, []
    tree = prepared.facts.tree(plan)
    for level, name in enumerate(plan.levels):
        listed = read_flow_level(folder.estimates, name)
        if level == 0 and plan.unprotected_totals:
            require_same_totals(listed.counts.sum(keepdims=True), np.array([flows.total]))
        margin = listed.counts, listed.centre, listed.std_error
        ends = interval(*margin, interval_factor(plan), flow_range(plan, level, flows.total))
        shown = _keys(tree, level, listed.nodes), listed.counts
        found.append(flow_errors(name, _true_flows(tree, level, flows), shown, ends))
    return tuple(found)


def flow_errors(
    level: str, truth: tuple[Ints, Ints], listed: tuple[Ints, Ints], ends: tuple[Ints, Ints]
) -> LevelErrors:
    """Errors over the union of true and listed pairs, each given by distinct keys and counts.

    Intervals are those of the listed pairs; others have none.
    """
    keys = np.union1d(truth[0], listed[0])
    size = max(keys.size, 1)  # nothing at all: one true zero

    def column(of: Ints, values: Ints, elsewhere: float) -> NDArray:
        kind = np.float64 if np.isnan(elsewhere) else np.int64
        made = np.full((size, 1), elsewhere, dtype=kind)
        made[np.searchsorted(keys, of), 0] = values
        return made

    lower, upper = (column(listed[0], end, np.nan) for end in ends)
    errors = level_errors(level, COUNTS, column(*truth, 0), column(*listed, 0), (lower, upper))
    return replace(errors, false_discovery_rate=errors.false_positives / max(1, listed[0].size))


def _true_flows(tree: FlowTree, level: int, flows: TrueFlows) -> tuple[Ints, Ints]:
    origin, destination = tree.shape.depths(level)
    nodes = Nodes(
        lifted(tree.origins, origin, flows.origin).astype(np.int32),
        lifted(tree.destinations, destination, flows.destination).astype(np.int32),
        flows.cell if level > tree.shape.leaf_pairs else None,
    )
    keys, inverse = np.unique(_keys(tree, level, nodes), return_inverse=True)
    counts = np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, inverse, flows.count)
    return keys, counts


def _keys(tree: FlowTree, level: int, nodes: Nodes) -> Ints:
    """One number for each pair, or cell of a pair."""
    width = tree.destinations.sizes[tree.shape.depths(level)[1]]
    keys = nodes.origin.astype(np.int64) * width + nodes.destination
    return keys if nodes.cell is None else keys * tree.n_cells + nodes.cell
