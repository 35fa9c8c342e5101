"""The internal tree on which noise is spent, while the hierarchy is what is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.hierarchy import Hierarchy

MOST_CUTOFF = 1_000_000
"""The largest fan-out that a step of a spine may name."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Spine:
    """The internal tree, where its leaves are published, and the noise class of every node.

    Leaf i of `hierarchy` is leaf `leaf_order[i]` of the published hierarchy. Node i of a level has
    the share number `classes[level][i]` of that level in the plan.
    """

    hierarchy: Hierarchy
    leaf_order: NDArray[np.int64]
    classes: tuple[NDArray[np.int16], ...]

    def __post_init__(self) -> None:
        n_leaves = self.hierarchy.sizes[-1]
        if not np.array_equal(np.sort(self.leaf_order), np.arange(n_leaves)):
            raise StructureError("A spine has every published leaf exactly once.")
        shapes = tuple((size,) for size in self.hierarchy.sizes)
        if tuple(c.shape for c in self.classes) != shapes or any(
            (c < 0).any() for c in self.classes
        ):
            raise StructureError("Every node of a spine has a noise class.")

    def rows(self, level: str, share_class: int) -> NDArray[np.int64]:
        """The nodes of a level that have a share."""
        return np.flatnonzero(self.classes[self.hierarchy.index(level)] == share_class)


@dataclass(frozen=True, slots=True)
class SpinePlan:
    """What a plan says about its spine: few numbers, whatever its size.

    `shares[l]` are the different shares of the nodes of level l, 0 for those that are not measured;
    `nodes[l]` says how many nodes have each. `paths` lists, for each kind of path from the root to
    a leaf, the position of the share on every level. `keeps_whole[i]` is the number of levels,
    from the root, on which each area of published level i lies in one node.
    """

    levels: tuple[str, ...]
    sizes: tuple[int, ...]
    shares: tuple[tuple[Fraction, ...], ...]
    nodes: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]
    keeps_whole: tuple[int, ...]
    steps: tuple[str, ...]
    digest: str

    def __post_init__(self) -> None:
        if not len(self.levels) == len(self.sizes) == len(self.shares) == len(self.nodes):
            raise StructureError("A spine has sizes and shares for each level.")
        for size, counts, shares in zip(self.sizes, self.nodes, self.shares, strict=True):
            if sum(counts) != size or len(counts) != len(shares) or min(counts) < 1:
                raise StructureError("Every node of a spine has one share, and no share is unused.")
        if not self.paths or any(len(path) != len(self.levels) for path in self.paths):
            raise StructureError("A path of a spine has one share on each level.")
        for path in self.paths:
            if sum(self.path_shares(path)) != 1:
                raise StructureError("The shares of every path of a spine sum to exactly one.")

    def path_shares(self, path: tuple[int, ...]) -> tuple[Fraction, ...]:
        return tuple(shares[i] for shares, i in zip(self.shares, path, strict=True))

    def require(self, spine: Spine) -> None:
        """The tree and its noise classes must be those that the plan was made and priced for."""
        tree = spine.hierarchy
        counts = tuple(
            tuple(np.bincount(c, minlength=len(shares)).tolist())
            for c, shares in zip(spine.classes, self.shares, strict=True)
        )
        if (tree.level_names, tree.sizes, counts) != (self.levels, self.sizes, self.nodes):
            raise StructureError("The spine is not the one that the plan was made for.")
        if tuple(distinct_paths(tree, spine.classes)) != self.paths:
            raise StructureError("A path of the spine has shares that the plan does not list.")
