"""What every reduction gives back: a tree, where its leaves came from, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.codes import Codes
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.node_shares import NodeShares


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """`hierarchy` is made of `original`: the same root, the same leaves, other nodes between.

    Leaf i of the new tree is leaf `leaf_order[i]` of the original. An instance has been proven to
    keep root and leaves, and its shares, if it has some, to sum to one on every path.
    """

    original: Hierarchy
    hierarchy: Hierarchy
    leaf_order: NDArray[np.int64]
    node_shares: NodeShares | None = None

    def __post_init__(self) -> None:
        old, new = self.original, self.hierarchy
        if str(old.codes(0)[0]) != str(new.codes(0)[0]):
            raise StructureError("A reduction must keep the root.")
        n_leaves = old.sizes[-1]
        if self.leaf_order.shape != (n_leaves,) or new.sizes[-1] != n_leaves:
            raise StructureError("A reduction must keep all leaves.")
        times = np.bincount(self.leaf_order, minlength=n_leaves)
        if times.size != n_leaves or (times != 1).any():
            raise StructureError("A reduction must keep every leaf exactly once.")
        if not (old.codes(old.leaf_level)[self.leaf_order] == new.codes(new.leaf_level)).all():
            raise StructureError("A reduction must not rename leaves.")
        if self.node_shares is not None:
            self.node_shares.require_one_on_every_path(new)

    @property
    def shares(self) -> list[list[Fraction]] | None:
        """Per level, the share of every node, where the reduction has shares."""
        return None if self.node_shares is None else self.node_shares.as_lists()

    def undo(self, estimates: Sequence[Any] | NDArray[Any]) -> list[NDArray[Any]]:
        """Carry estimates back: one array per level of the original, made of the leaves.

        `estimates` holds one array per level of the new tree, or is the array of its leaves.
        """
        is_leaves = isinstance(estimates, np.ndarray) or np.ndim(estimates[-1]) == 0
        leaves = np.asarray(estimates if is_leaves else estimates[-1])
        if leaves.shape[:1] != self.leaf_order.shape:
            raise StructureError(
                f"There are {self.leaf_order.size} leaves, but estimates for {leaves.shape[:1]}. "
                "Give one array per level, or the array of the leaves."
            )
        back = np.empty_like(leaves)
        back[self.leaf_order] = leaves
        return self.original.sum_up(back)

    def then(self, following: Reduction) -> Reduction:
        """This reduction and one that was made of its tree, as one."""
        if following.original is not self.hierarchy:
            raise StructureError("The second reduction was made of another tree.")
        return Reduction(
            self.original,
            following.hierarchy,
            self.leaf_order[following.leaf_order],
            following.node_shares,
        )


def nothing(hierarchy: Hierarchy) -> Reduction:
    """The reduction that changes nothing; the tree has areas of its own only."""
    tree = plain(hierarchy)
    return Reduction(hierarchy, tree, np.arange(hierarchy.sizes[-1]))


def plain(hierarchy: Hierarchy) -> Hierarchy:
    """The same tree; nodes that fill up a ragged one are nodes like others inside a spine."""
    return Hierarchy(
        hierarchy.level_names,
        hierarchy.node_codes,
        hierarchy.child_start,
        tuple(np.zeros(size, dtype=bool) for size in hierarchy.sizes),
    )


def tree_of(
    level_names: Sequence[str], codes: Sequence[Codes], starts: Sequence[NDArray[np.int64]]
) -> Hierarchy:
    """A tree without padding."""
    passing = tuple(np.zeros(c.size, dtype=bool) for c in codes)
    return Hierarchy(tuple(level_names), tuple(codes), tuple(starts), passing)


def require_level(hierarchy: Hierarchy, level: int | str, least: int, why: str) -> int:
    """The position of a level that a reduction may change."""
    index = hierarchy.index(level)
    if index < least:
        raise StructureError(f"Level {hierarchy.level_names[index]!r} cannot be redrawn: {why}")
    return index
