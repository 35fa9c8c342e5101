"""Variances of the best linear unbiased estimates where all areas of a level have the same noise.

The recursion is that of `trellis.numerics.trees.gls`, level by level in NumPy: commands that only
check a release load no compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from trellis.model.trees.hierarchy import Hierarchy

Floats = NDArray[np.float64]


def level_variances(
    hierarchy: Hierarchy, noise: Sequence[float], root_part: float = 1.0
) -> list[Floats]:
    """The variance of every node's estimate, root first.

    `noise` has a variance for each level, infinity where nothing is measured; the last level is
    measured. What the root's own subtree says of it is known to `root_part` of that variance.
    """
    subtree = [np.full(hierarchy.sizes[-1], noise[-1])]
    for level in reversed(range(hierarchy.n_levels - 1)):
        subtree.insert(0, _combined(_sums(hierarchy, level, subtree[0]), noise[level]))
    final = [root_part * subtree[0]]
    for level in range(hierarchy.n_levels - 1):
        below, n_children = subtree[level + 1], np.diff(hierarchy.child_start[level])
        total = np.repeat(_sums(hierarchy, level, below), n_children)
        share = np.divide(below, total, out=np.zeros_like(below), where=total > 0)
        final.append(share * (total - below) + share**2 * np.repeat(final[level], n_children))
    return final


def _sums(hierarchy: Hierarchy, level: int, below: Floats) -> Floats:
    return np.add.reduceat(below, hierarchy.child_start[level][:-1])


def _combined(children: Floats, own: float) -> Floats:
    """The variance of a node's own measurement and the sum of its children, taken together."""
    if own == 0:
        return np.zeros_like(children)
    return children if own == inf else own * children / (own + children)
