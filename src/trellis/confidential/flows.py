"""The true flows, and the tree of those that are not zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.flows import FlowTree, Positions, Side
from trellis.model.trees.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class TrueFlows:
    """Counts by pair of leaves and cell, each at most once. Its text form shows no number."""

    origin: Positions = field(repr=False)
    destination: Positions = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)
    cell: Positions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        columns = [self.origin, self.destination, self.count]
        if self.cell is not None:
            columns.append(self.cell)
        if len({column.shape for column in columns}) != 1 or self.count.dtype != np.int64:
            raise StructureError("True flows are whole numbers, one for each pair.")
        if (self.count < 0).any():
            raise StructureError("True flows must not be negative.")

    @property
    def total(self) -> int:
        return int(self.count.sum())

    def in_tree_order(self, tree: FlowTree) -> Self:
        """Sorted so that the flows below any node of the tree are contiguous."""
        digits = [_digits(tree, level, self) for level in range(len(tree.shape.steps))]
        words = _packed(digits)
        order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words[::-1])
        cell = None if self.cell is None else self.cell[order]
        return type(self)(self.origin[order], self.destination[order], self.count[order], cell)


@dataclass(frozen=True, slots=True, eq=False)
class TrueLevel:
    """The nodes of one level that are not zero, in the order of the tree.

    Those below node `i` of the level above are `start[i] : start[i + 1]`; `within` is their
    position among all its children.
    """

    start: NDArray[np.int64] = field(repr=False)
    within: Positions = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)


def true_levels(flows: TrueFlows, tree: FlowTree) -> Iterator[TrueLevel]:
    """Levels below the root, from flows in the order of the tree."""
    rows = flows.count.size
    is_first = np.zeros(rows, dtype=bool)  # first row of a node of this level
    is_first[:1] = True
    parents = np.flatnonzero(is_first)
    for level in range(len(tree.shape.steps)):
        digits = _digits(tree, level, flows)
        is_first[1:] |= digits[1:] != digits[:-1]
        firsts = np.flatnonzero(is_first)
        start = np.append(np.searchsorted(firsts, parents), firsts.size)
        count = np.add.reduceat(flows.count, firsts) if rows else flows.count
        yield TrueLevel(start, digits[firsts], count)
        parents = firsts


def _digits(tree: FlowTree, level: int, flows: TrueFlows) -> Positions:
    """For each flow, the position of its node among its siblings on the level below `level`."""
    side = tree.shape.steps[level]
    origin, destination = tree.shape.depths(level)
    if side is Side.ORIGIN:
        return _leaf_digits(tree.origins, origin)[flows.origin]
    if side is Side.DESTINATION:
        return _leaf_digits(tree.destinations, destination)[flows.destination]
    assert flows.cell is not None
    return flows.cell


def _leaf_digits(hierarchy: Hierarchy, level: int) -> Positions:
    """For each leaf, the position among its siblings of its ancestor on the level below."""
    start = hierarchy.child_start[level]
    digits = np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))
    for below in hierarchy.child_start[level + 1 :]:
        digits = np.repeat(digits, np.diff(below))
    return digits.astype(np.int32)


def _packed(digits: Sequence[Positions]) -> list[NDArray[np.int64]]:
    """Digits as numbers of mixed radix, most significant first, in as few words as hold them."""
    words, room = [np.zeros(digits[0].size, dtype=np.int64)], 2**63
    for digit in digits:
        radix = int(digit.max(initial=0)) + 1
        if radix > room:
            words.append(np.zeros(digit.size, dtype=np.int64))
            room = 2**63
        words[-1] = words[-1] * radix + digit
        room //= radix
    return words
