"""Mechanisms for flows, run in memory: the descent with any rule and noise, and baselines.

All are for one trip per user and neighbours `replace`, as in the paper. Results are tables of all
levels, written out: the data sets here are small enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, sqrt

import numpy as np
from _flow_data import FlowData
from scipy.optimize import LinearConstraint, milp

from trellis.confidential.flows import true_levels
from trellis.estimate.flows.families import FamilyRule
from trellis.measure.flows import noisy_children
from trellis.model import Hierarchy
from trellis.model.trees.flows import ROOT, Nodes
from trellis.privacy.accounting import calibrate
from trellis.privacy.bits import OsRandom
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

DELTA = Fraction(1, 10**8)
Tables = list[np.ndarray]


def exact_noise(epsilon: Fraction, levels: int) -> Fraction:
    """The least sigma^2 of every level by the exact accountant, all of the budget spent."""
    return calibrate(epsilon, DELTA, [{1: levels}], "replace").noise


def published_noise(epsilon: Fraction, levels: int) -> Fraction:
    """That of the published code: eps = rho + 2 sqrt(rho log(1/delta)), split over 2 T levels."""
    bound = log(1 / float(DELTA))
    rho = (sqrt(bound + float(epsilon)) - sqrt(bound)) ** 2
    return Fraction(2 * levels / rho).limit_denominator(1000)


def descent(
    data: FlowData, noise: Fraction, method: str, penalty: float = 0.0, seed: int = 0
) -> list[tuple[Nodes, np.ndarray]]:
    """The nodes of every level that are left, with their counts."""
    tree, bits, mechanism = data.tree, OsRandom(), DiscreteGaussian(noise)
    flows = data.flows.in_tree_order(tree)
    nodes, counts, where = ROOT, np.array([flows.total]), np.array([0])
    found = [(nodes, counts)]
    kind = BlackBoxRule if method == "chebyshev_lp" else FamilyRule
    for level, truth in enumerate(true_levels(flows, tree)):
        rule = kind(method, mechanism.variance, penalty, seed + level)
        start, children = tree.expand(level, nodes)
        values, positions = noisy_children(truth, where, start, mechanism, bits)
        fitted = rule.fit(values, start, counts, 0)
        left = np.flatnonzero(fitted)
        nodes, counts, where = children[left], fitted[left], positions[left]
        found.append((nodes, counts))
    return found


class BlackBoxRule(FamilyRule):
    """The same optimum from HiGHS, an integer program for each family; it takes any of many."""

    def fit(self, values, start, totals, first_index):
        del first_index
        families = zip(start[:-1], start[1:], totals, strict=True)
        fitted = [_chebyshev_program(values[lo:hi], total) for lo, hi, total in families]
        return np.concatenate(fitted)


def _chebyshev_program(x: np.ndarray, total: int) -> np.ndarray:
    size = x.size
    cost = np.append(np.zeros(size), 1.0)  # y_1 .. y_b and the largest distance t
    one, column = np.eye(size), np.ones((size, 1))
    rows = [
        LinearConstraint(np.hstack([one, -column]), -np.inf, x),  # y - t <= x
        LinearConstraint(np.hstack([one, column]), x, np.inf),  # y + t >= x
        LinearConstraint(np.append(np.ones(size), 0.0), total, total),
    ]
    solution = milp(cost, constraints=rows, integrality=np.ones(size + 1))
    return np.rint(solution.x[:size]).astype(np.int64)


def vanilla_gauss(data: FlowData, epsilon: Fraction) -> Tables:
    """Gaussian noise on every pair of leaves, the exact noise of one table; the rest are sums."""
    leaves = written_out(data, data.flows.origin, data.flows.destination, data.flows.count)
    noise = DiscreteGaussian(exact_noise(epsilon, 1)).sample(leaves.size)
    return all_levels(data, leaves + noise.reshape(leaves.shape))


def stability_histogram(data: FlowData, epsilon: Fraction) -> Tables:
    """Laplace noise on pairs that have a flow, and only those above a threshold.

    Replacing a trip moves two counts by one: scale 2 / epsilon. A count of one, present in one data
    set and absent from the other, is listed with probability at most delta / 2, and there are at
    most two such: P[1 + Z > t] = q^t / (1 + q) with q = exp(-epsilon / 2).
    """
    scale = 2 / epsilon
    q = exp(-float(epsilon) / 2)
    threshold = ceil(float(scale) * log(2 / (float(DELTA) * (1 + q))))
    noisy = data.flows.count + DiscreteLaplace(scale).sample(data.flows.count.size)
    kept = noisy > threshold
    listed = written_out(data, data.flows.origin[kept], data.flows.destination[kept], noisy[kept])
    return all_levels(data, listed)


# -- tables and errors ----------------------------------------------------------------------------


def written_out(data: FlowData, origin, destination, count) -> np.ndarray:
    table = np.zeros((data.tree.origins.sizes[-1], data.tree.destinations.sizes[-1]), np.int64)
    np.add.at(table, (origin, destination), count)
    return table


def all_levels(data: FlowData, leaves: np.ndarray) -> Tables:
    """Tables of all levels of the tree, from that of the leaves."""
    shape = data.tree.shape
    depths = [shape.depths(level) for level in range(len(shape.names))]
    return [
        _summed(data.tree.destinations, d, _summed(data.tree.origins, o, leaves).T).T
        for o, d in depths
    ]


def _summed(hierarchy: Hierarchy, level: int, rows: np.ndarray) -> np.ndarray:
    for above in range(hierarchy.leaf_level - 1, level - 1, -1):
        rows = np.add.reduceat(rows, hierarchy.child_start[above][:-1], axis=0)
    return rows


def tables_of(data: FlowData, found: list[tuple[Nodes, np.ndarray]]) -> Tables:
    """What a descent left, written out."""
    tables = []
    for level, (nodes, counts) in enumerate(found):
        o, d = data.tree.shape.depths(level)
        table = np.zeros((data.tree.origins.sizes[o], data.tree.destinations.sizes[d]), np.int64)
        table[nodes.origin, nodes.destination] = counts
        tables.append(table)
    return tables


@dataclass(frozen=True)
class Errors:
    """By level: largest and mean absolute error, false discovery and false negative rate."""

    largest: np.ndarray
    mean: np.ndarray
    false_discovery: np.ndarray
    false_negative: np.ndarray


def errors(truth: Tables, found: Tables) -> Errors:
    rows = []
    for t, f in zip(truth, found, strict=True):
        gap, listed, there = np.abs(f - t), f > 0, t > 0
        rows.append(
            (gap.max(), gap.mean(), (listed & ~there).sum() / max(1, listed.sum()),
             (there & ~listed).sum() / max(1, there.sum()))
        )  # fmt: skip
    return Errors(*np.array(rows, dtype=float).T)


def mean_errors(runs: list[Errors]) -> Errors:
    return Errors(*(np.mean([getattr(run, name) for run in runs], axis=0)
                    for name in Errors.__dataclass_fields__))  # fmt: skip
