"""How many nodes of a tree must be added and subtracted to form an area."""

from __future__ import annotations

import numpy as np

from trellis.verify.counts.families import Families


def distances(families: list[Families], member: np.ndarray) -> np.ndarray:
    """The least number for every area; `member` is the area of each leaf, or -1.

    Below a node, let A be the sum over its children of what it takes to form the area's part of
    them, and B the same for the rest of them. Then min(A, B + 1) forms the area's part of the node,
    and min(B, A + 1) the rest. A child without a leaf of the area takes 0, and 1.
    """
    n_areas = int(member.max(initial=-1)) + 1
    node = np.flatnonzero(member >= 0)
    area = member[node].astype(np.int64)
    part, rest = np.ones(node.size, dtype=np.int64), np.zeros(node.size, dtype=np.int64)
    for family in reversed(families):
        children = np.bincount(family.parent)
        key, of = np.unique(family.parent[node] * n_areas + area, return_inverse=True)
        inside = np.bincount(of, np.minimum(part, rest + 1)).astype(np.int64)
        without = children[key // n_areas] - np.bincount(of)
        outside = np.bincount(of, np.minimum(rest, part + 1)).astype(np.int64) + without
        node, area, part, rest = key // n_areas, key % n_areas, inside, outside
    found = np.zeros(n_areas, dtype=np.int64)
    found[area] = np.minimum(part, rest + 1)
    return found
