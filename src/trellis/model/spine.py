"""The internal tree on which noise is spent, beside the hierarchy that is published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.model.hierarchy import Hierarchy


def distinct_paths(
    hierarchy: Hierarchy, classes: Sequence[NDArray[np.integer]]
) -> list[tuple[int, ...]]:
    """The classes of the nodes on each path from the root to a leaf, each combination once."""
    paths: list[tuple[int, ...]] = [(int(classes[0][0]),)]
    number = np.zeros(1, dtype=np.int64)  # of the path that ends at each node of a level
    for level in range(1, hierarchy.n_levels):
        n_classes = int(classes[level].max()) + 1
        key = number[hierarchy.parents(level)] * n_classes + classes[level]
        found = np.flatnonzero(np.bincount(key, minlength=len(paths) * n_classes))
        place = np.zeros(len(paths) * n_classes, dtype=np.int64)
        place[found] = np.arange(found.size)
        number = place[key]
        paths = [(*paths[k // n_classes], int(k % n_classes)) for k in found.tolist()]
    return sorted(paths)
