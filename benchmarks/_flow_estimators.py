"""Estimators of flows on the same measurements, by the code that makes releases.

A comparison measures once per run, by the descent of `chebyshev`, and estimates from the files. The
penalty of a sparse estimator stands after its name: `gls_sparse 3`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from _flow_data import ONE_CELL, FlowData, from_children
from _flow_mechanisms import DELTA, Errors, all_levels, errors, mean_errors, tables_of, written_out

from trellis.confidential.flows import TrueFlows
from trellis.estimate.flows.levels import estimate_flow_levels
from trellis.measure.charged_noise import ChargedNoise
from trellis.model import Hierarchy
from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.trees.flows import FlowLevel, FlowTree, Nodes
from trellis.planning.kinds.flows import FlowsRequest, plan_flows
from trellis.privacy.bits import OsRandom
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.workflow.confidential.flow_descent import measure_flows

Estimates = list[FlowLevel]


@cache
def plan_of(data: FlowData, epsilon: Fraction) -> Plan:
    """One trip per user, neighbours `replace`, uniform shares: as in the paper, noise exact."""
    request = FlowsRequest(
        release="flows", dataset="flows", unit="user", neighbours=Neighbours.REPLACE,
        max_contribution=1, exactly=True, distinct=False,
        budget=Budget(epsilon=epsilon, delta=DELTA), shares=Shares(), method="chebyshev",
        penalty=None, confidence=Fraction(9, 10),
    )  # fmt: skip
    return plan_flows(request, data.tree, ONE_CELL, "digest")


def estimated(
    data: FlowData, epsilon: Fraction, estimators: Sequence[str], runs: int
) -> Iterator[dict[str, Estimates]]:
    """For each run what every estimator makes of its measurements."""
    plan = plan_of(data, epsilon)
    for number in range(runs):
        with tempfile.TemporaryDirectory() as name:
            folder, seed = Path(name), 100 * number
            claim = Claim("run", "token", plan.privacy)
            measure_flows(
                folder, plan, data.tree, data.flows, ChargedNoise(plan, claim, OsRandom()), seed
            )
            yield {e: _estimate(folder, plan, data, e, seed) for e in estimators}


def _estimate(folder: Path, plan: Plan, data: FlowData, estimator: str, seed: int) -> Estimates:
    method, _, penalty = estimator.partition(" ")
    plan = replace(plan, method=method, penalty=Fraction(penalty) if penalty else None)
    return [
        _joined(list(runs))
        for _, runs in estimate_flow_levels(folder, plan, data.tree, seed)
    ]  # fmt: skip


def _joined(parts: list[FlowLevel]) -> FlowLevel:
    columns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("counts", "centre", "std_error")
    )
    return FlowLevel(Nodes.joined([part.nodes for part in parts]), *columns)


def compare(
    data: FlowData, epsilon: Fraction, estimators: Sequence[str], runs: int
) -> dict[str, Errors]:
    """Mean errors by level over all possible pairs, written out: for small sets."""
    flows = data.flows
    truth = all_levels(data, written_out(data, flows.origin, flows.destination, flows.count))
    found: dict[str, list[Errors]] = {name: [] for name in estimators}
    for made in estimated(data, epsilon, estimators, runs):
        for name, levels in made.items():
            tables = tables_of(data, [(level.nodes, level.counts) for level in levels])
            found[name].append(errors(truth, tables))
    return {name: mean_errors(runs) for name, runs in found.items()}


@dataclass(frozen=True)
class Coverage:
    """Shares of 90 % intervals that hold the truth, and standard errors in units of the noise."""

    named: float  # of pairs of more than eight standard deviations of the noise
    listed: float
    std_error: float


def coverage(data: FlowData, epsilon: Fraction, estimators: Sequence[str], runs: int) -> dict:
    """Over all levels below the root and all runs, per estimator."""
    flows, plan = data.flows, plan_of(data, epsilon)
    truth = all_levels(data, written_out(data, flows.origin, flows.destination, flows.count))
    sums = {name: np.zeros(5) for name in estimators}
    for made in estimated(data, epsilon, estimators, runs):
        for name, levels in made.items():
            for level, made_level in enumerate(levels[1:], start=1):
                true = truth[level][made_level.nodes.origin, made_level.nodes.destination]
                sigma = plan.queries[level].variance ** 0.5
                inside = np.abs(made_level.centre - true) <= 1.6449 * made_level.std_error + 0.5
                large = true > 8 * sigma
                sums[name] += [inside[large].sum(), large.sum(), inside.sum(), inside.size,
                               (made_level.std_error / sigma).sum()]  # fmt: skip
    return {n: Coverage(s[0] / s[1], s[2] / s[3], s[4] / s[3]) for n, s in sums.items()}


# -- larger sets ----------------------------------------------------------------------------------


def us_tracts(path: Path) -> FlowData:
    """Commuters between tracts: state, county, tract."""
    table = pq.read_table(path)
    ends = [table[name].to_numpy() for name in ("home", "work")]
    codes = np.unique(np.concatenate(ends))
    text = [f"{code:011d}" for code in codes.tolist()]
    paths = [("all", code[:2], code[:5], code) for code in text]
    tree = Hierarchy.from_paths(paths, ["nation", "state", "county", "tract"])
    origin, destination = (np.searchsorted(codes, end).astype(np.int32) for end in ends)
    flows = TrueFlows(origin, destination, table["workers"].to_numpy().astype(np.int64))
    return FlowData("US tracts", FlowTree.of("destination", tree, tree, ONE_CELL), flows)


def compare_large(
    data: FlowData, epsilon: Fraction, estimators: Sequence[str], runs: int
) -> dict[str, Errors]:
    """Mean errors by level over the pairs that are listed or have a trip."""
    levels = range(len(data.tree.shape.names))
    truth = [_keyed(data, level, *_true_level(data, level)) for level in levels]
    found: dict[str, list[Errors]] = {name: [] for name in estimators}
    for made in estimated(data, epsilon, estimators, runs):
        for name, levels_made in made.items():
            rows = [
                _errors_of(truth[level], _keyed(data, level, made_level.nodes, made_level.counts))
                for level, made_level in enumerate(levels_made)
            ]
            found[name].append(Errors(*np.array(rows, dtype=float).T))
    return {name: mean_errors(runs) for name, runs in found.items()}


def _true_level(data: FlowData, level: int) -> tuple[Nodes, np.ndarray]:
    ends = []
    for hierarchy, depth, leaves in zip(
        (data.tree.origins, data.tree.destinations), data.tree.shape.depths(level),
        (data.flows.origin, data.flows.destination), strict=True,
    ):  # fmt: skip
        area = leaves.astype(np.int64)
        for below in range(hierarchy.leaf_level, depth, -1):
            area = hierarchy.parents(below)[area]
        ends.append(area.astype(np.int32))
    return Nodes(*ends), data.flows.count


def _keyed(data: FlowData, level: int, nodes: Nodes, counts: np.ndarray) -> tuple:
    """Distinct keys of pairs, and their counts."""
    width = data.tree.destinations.sizes[data.tree.shape.depths(level)[1]]
    keys, place = np.unique(nodes.origin.astype(np.int64) * width + nodes.destination,
                            return_inverse=True)  # fmt: skip
    return keys, np.bincount(place, counts, keys.size)


def _errors_of(truth: tuple, found: tuple) -> tuple[float, float, float, float]:
    keys = np.union1d(truth[0], found[0])
    there, listed = (np.zeros(keys.size) for _ in range(2))
    for column, (some, counts) in ((there, truth), (listed, found)):
        column[np.searchsorted(keys, some)] = counts
    gap = np.abs(there - listed)
    false = ((listed > 0) & (there == 0)).sum() / max(1, (listed > 0).sum())
    missed = ((there > 0) & (listed == 0)).sum() / max(1, (there > 0).sum())
    return gap.max(initial=0), gap.mean() if gap.size else 0.0, false, missed


def with_levels(data: FlowData, kept: Sequence[int]) -> FlowData:
    """The same flows on hierarchies that have only these levels."""
    tree = _with_levels(data.tree.origins, kept)
    return FlowData(data.name, FlowTree.of("destination", tree, tree, ONE_CELL), data.flows)


def _with_levels(hierarchy: Hierarchy, kept: Sequence[int]) -> Hierarchy:
    numbers = []
    for above, below in pairwise(kept):
        first = np.arange(hierarchy.sizes[above] + 1)
        for level in range(above, below):
            first = hierarchy.child_start[level][first]
        numbers.append(np.diff(first))
    return from_children(numbers)


def compare_on_fewer_levels(
    data: FlowData, kept: Sequence[int], epsilon: Fraction, estimators: Sequence[str], runs: int
) -> dict[str, Errors]:
    """Errors on all levels of `data`, by sums of leaves, of releases that have only some."""
    coarse, flows = with_levels(data, kept), data.flows
    truth = all_levels(data, written_out(data, flows.origin, flows.destination, flows.count))
    found: dict[str, list[Errors]] = {name: [] for name in estimators}
    for made in estimated(coarse, epsilon, estimators, runs):
        for name, levels in made.items():
            nodes = levels[-1].nodes
            leaves = written_out(data, nodes.origin, nodes.destination, levels[-1].counts)
            found[name].append(errors(truth, all_levels(data, leaves)))
    return {name: mean_errors(runs) for name, runs in found.items()}
