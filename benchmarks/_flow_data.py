"""Origin/destination data sets: those of Boninsegna and Silvestri (2025), and larger ones.

The published sets were made from two partitions: 8 levels of 2 areas each (T = 16), and 4 levels of
2 to 10 areas (T = 8; 435 leaves). Flows are rounded Pareto variables on all pairs of leaves
(complete), on half of them (dense) or on 1 % (sparse). The published files are not redistributed:
flows are drawn here with Pr(x) ~ x^-2.5 and a least flow that gives the published number of users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.confidential.flows import TrueFlows
from trellis.model import Hierarchy, Schema
from trellis.model.trees.codes import CODE
from trellis.model.trees.flows import FlowTree

ONE_CELL = Schema({"cell": ["total"]})
SHARES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
USERS = {
    "binary complete": 1_051_271, "binary dense": 734_688, "binary sparse": 23_302,
    "random complete": 2_019_580, "random dense": 1_003_943, "random sparse": 67_840,
}  # fmt: skip
"""Table 1 of the paper."""
PUBLISHED = {
    "binary complete": (874, 139, 19.3), "binary dense": (826, 142, 19.0),
    "binary sparse": (847, 132, 16.8), "random complete": (991, 130, 17.1),
    "random dense": (898, 122, 16.3), "random sparse": (690, 117, 15.2),
}  # fmt: skip
"""Mean largest error on the leaves at epsilon = 0.1, 1 and 10, as published."""
PUBLISHED_DISCOVERY = {"binary sparse": 89.7, "random dense": 36.2, "random sparse": 83.8}
"""False discoveries on the leaves at epsilon = 1, %, as published."""
REFERENCE_SECONDS = {
    "binary complete": 196, "binary sparse": 28, "random complete": 234, "random dense": 162,
    "random sparse": 19,
}  # fmt: skip
"""CPU seconds of the published code at epsilon = 1, measured once on a machine of two cores."""


@dataclass(frozen=True, eq=False)
class FlowData:
    name: str
    tree: FlowTree
    flows: TrueFlows


def balanced(fan_outs: list[int]) -> Hierarchy:
    """A tree whose nodes of one level all have equally many children."""
    return from_children([np.full(int(np.prod(fan_outs[:i])), n) for i, n in enumerate(fan_outs)])


def from_children(numbers: list[np.ndarray]) -> Hierarchy:
    starts = [np.concatenate([[0], np.cumsum(n)]).astype(np.int64) for n in numbers]
    sizes = [1, *(int(s[-1]) for s in starts)]
    codes = [np.array([f"{i:07d}" for i in range(n)], dtype=object).astype(CODE) for n in sizes]
    names = tuple(f"level_{i}" for i in range(len(sizes)))
    marks = tuple(np.zeros(n, dtype=bool) for n in sizes)
    return Hierarchy(names, tuple(codes), tuple(starts), marks)


def uneven(levels: int, least: int, most: int, leaves: int) -> Hierarchy:
    """Random numbers of children; the first seed that gives this many leaves."""
    for seed in range(100_000):
        rng, numbers, size = np.random.default_rng(seed), [], 1
        for _ in range(levels):
            numbers.append(rng.integers(least, most + 1, size))
            size = int(numbers[-1].sum())
        if size == leaves:
            return from_children(numbers)
    raise ValueError(f"no seed gives {leaves} leaves")


def pareto_flows(areas: int, pairs: int, users: int, seed: int = 0) -> TrueFlows:
    """Flows on random pairs, of this many users up to rounding."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(areas * areas, pairs, replace=False)
    shape = (1 - rng.random(pairs)) ** (-1 / 1.5)
    low, high = 0.0, float(users)
    for _ in range(60):
        middle = (low + high) / 2
        too_many = np.maximum(np.rint(middle * shape), 1).sum() > users
        low, high = (low, middle) if too_many else (middle, high)
    counts = np.maximum(np.rint(low * shape), 1).astype(np.int64)
    origin, destination = np.divmod(chosen, areas)
    return TrueFlows(origin.astype(np.int32), destination.astype(np.int32), counts)


def published_sets() -> list[FlowData]:
    """Binary and random; complete, dense, sparse."""
    sets = []
    for kind, tree in (("binary", balanced([2] * 8)), ("random", uneven(4, 2, 10, 435))):
        areas = tree.sizes[-1]
        for name, share in SHARES.items():
            users = USERS[f"{kind} {name}"]
            flows = pareto_flows(areas, int(areas * areas * share), users)
            flow_tree = FlowTree.of("destination", tree, tree, ONE_CELL)
            sets.append(FlowData(f"{kind} {name}", flow_tree, flows))
    return sets


def gravity_flows(hierarchy: Hierarchy, pairs: int, seed: int = 0) -> TrueFlows:
    """Flows to near areas, mostly: a geometric number of levels up, and down at random."""
    rng = np.random.default_rng(seed)
    areas = hierarchy.sizes[-1]
    origin = rng.integers(0, areas, 2 * pairs, dtype=np.int64)
    up = np.minimum(rng.geometric(0.5, 2 * pairs), hierarchy.n_levels - 1)
    destination = np.empty_like(origin)
    for steps in range(1, hierarchy.n_levels):
        chosen = up == steps
        low, high = _leaves_around(hierarchy, steps, origin[chosen])
        destination[chosen] = low + (rng.random(low.size) * (high - low)).astype(np.int64)
    keys = rng.permutation(np.unique(origin * areas + destination))[:pairs]
    counts = np.rint(4 / (1 - rng.random(keys.size)) ** 0.75).astype(np.int64)
    origin, destination = np.divmod(keys, areas)
    return TrueFlows(origin.astype(np.int32), destination.astype(np.int32), counts)


def _leaves_around(
    hierarchy: Hierarchy, steps: int, leaves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The leaves below the ancestor that lies `steps` levels up."""
    area = leaves
    for level in range(hierarchy.leaf_level, hierarchy.leaf_level - steps, -1):
        area = hierarchy.parents(level)[area]
    low, high = area, area + 1
    for start in hierarchy.child_start[hierarchy.leaf_level - steps :]:
        low, high = start[low], start[high]
    return low, high
