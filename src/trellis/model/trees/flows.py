"""The tree of a release of flows: two hierarchies, split in turn.

A destination tree splits the destination one level finer, then the origin, and so on; an origin
tree the other way round. Where one side has ended, the other goes on alone. Below the pairs of
leaves there may be one more level: the cells of a few attributes of a trip.

    nation-to-nation > nation-to-state > state-to-state > state-to-county > county-to-county

A node is a pair of positions in the two hierarchies. The tree is never written out: a level is
expanded below the nodes that are left, run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

Positions = NDArray[np.int32]


class Side(StrEnum):
    """What a step of the tree splits."""

    ORIGIN = "origin"
    DESTINATION = "destination"
    CELLS = "cells"


@dataclass(frozen=True, slots=True)
class FlowShape:
    """The names of the levels on both sides, and which side is split first."""

    tree: Side
    origin_levels: tuple[str, ...]
    destination_levels: tuple[str, ...]
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tree is Side.CELLS:
            raise StructureError("A tree of flows begins with the origin or the destination.")
        if len(self.origin_levels) < 2 and len(self.destination_levels) < 2:
            raise StructureError("Neither hierarchy has a level below its root: nothing flows.")

    @property
    def steps(self) -> tuple[Side, ...]:
        """What is split from one level to the next."""
        left = {
            Side.ORIGIN: len(self.origin_levels) - 1,
            Side.DESTINATION: len(self.destination_levels) - 1,
        }
        other = Side.ORIGIN if self.tree is Side.DESTINATION else Side.DESTINATION
        steps: list[Side] = []
        while any(left.values()):
            for side in (self.tree, other):
                if left[side]:
                    steps.append(side)
                    left[side] -= 1
        return (*steps, Side.CELLS) if self.attributes else tuple(steps)

    def depths(self, level: int) -> tuple[int, int]:
        """The levels of origin and destination on a level of the tree."""
        done = self.steps[:level]
        return done.count(Side.ORIGIN), done.count(Side.DESTINATION)

    @property
    def names(self) -> tuple[str, ...]:
        """The levels of the tree, root first."""
        names = []
        for level in range(len(self.steps) + 1):
            origin, destination = self.depths(level)
            names.append(f"{self.origin_levels[origin]}-to-{self.destination_levels[destination]}")
        if self.attributes:
            names[-1] += "-by-" + "-".join(self.attributes)
        return tuple(names)

    @property
    def leaf_pairs(self) -> int:
        """The first level that separates all pairs of leaves."""
        return len(self.steps) - bool(self.attributes)


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Nodes of one level in the order of the tree; `cell` on the level of attributes only."""

    origin: Positions
    destination: Positions
    cell: Positions | None = None

    def __len__(self) -> int:
        return self.origin.size

    def __getitem__(self, chosen: slice | NDArray) -> Nodes:
        cell = None if self.cell is None else self.cell[chosen]
        return Nodes(self.origin[chosen], self.destination[chosen], cell)

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Self:
        if not parts:
            return cls(np.empty(0, np.int32), np.empty(0, np.int32))
        cells = [part.cell for part in parts if part.cell is not None]
        return cls(
            np.concatenate([part.origin for part in parts]),
            np.concatenate([part.destination for part in parts]),
            np.concatenate(cells) if cells else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FlowLevel:
    """Estimated flows of one level that are not zero, in the order of the tree.

    `centre` is unbiased, with standard error `std_error`; `counts` are published.
    """

    nodes: Nodes
    counts: NDArray[np.int64]
    centre: NDArray[np.float64]
    std_error: NDArray[np.float64]

    def __post_init__(self) -> None:
        columns = (self.nodes.destination, self.counts, self.centre, self.std_error)
        if any(column.shape != self.nodes.origin.shape for column in columns):
            raise StructureError("A level of flows needs one of each number for every node.")
        if self.counts.dtype != np.int64 or (self.counts <= 0).any():
            raise StructureError("Published flows are whole numbers above zero.")


ROOT = Nodes(np.zeros(1, np.int32), np.zeros(1, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class FlowTree:
    """A shape with its hierarchies."""

    shape: FlowShape
    origins: Hierarchy
    destinations: Hierarchy
    n_cells: int = 1

    def __post_init__(self) -> None:
        if (self.origins.level_names, self.destinations.level_names) != (
            self.shape.origin_levels,
            self.shape.destination_levels,
        ):
            raise StructureError("The shape was made for other hierarchies.")
        if max(*self.origins.sizes, *self.destinations.sizes) >= 2**31:
            raise StructureError("More than 2^31 areas on a level are not supported.")

    @classmethod
    def of(cls, tree: str, origins: Hierarchy, destinations: Hierarchy, schema: Schema) -> Self:
        attributes = schema.names if schema.n_cells > 1 else ()
        shape = FlowShape(Side(tree), origins.level_names, destinations.level_names, attributes)
        return cls(shape, origins, destinations, schema.n_cells)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Possible nodes by level; whole numbers of any size."""
        sizes = []
        for level in range(len(self.shape.steps) + 1):
            origin, destination = self.shape.depths(level)
            cells = self.n_cells if level > self.shape.leaf_pairs else 1
            sizes.append(prod((self.origins.sizes[origin], self.destinations.sizes[destination],
                               cells)))  # fmt: skip
        return tuple(sizes)

    def child_numbers(self, level: int, nodes: Nodes) -> NDArray[np.int64]:
        """How many children each node of `level` has."""
        side = self.shape.steps[level]
        if side is Side.CELLS:
            return np.full(len(nodes), self.n_cells, dtype=np.int64)
        start, areas = self._split(level, nodes)
        return start[areas + 1] - start[areas]

    def expand(self, level: int, nodes: Nodes) -> tuple[NDArray[np.int64], Nodes]:
        """All children of nodes of `level`, and the row pointer of the families."""
        numbers = self.child_numbers(level, nodes)
        pointer = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.cumsum(numbers, out=pointer[1:])
        within = np.arange(pointer[-1], dtype=np.int64) - np.repeat(pointer[:-1], numbers)
        side = self.shape.steps[level]
        origin, destination = (np.repeat(a, numbers) for a in (nodes.origin, nodes.destination))
        if side is Side.CELLS:
            return pointer, Nodes(origin, destination, within.astype(np.int32))
        start, areas = self._split(level, nodes)
        child = (np.repeat(start[areas], numbers) + within).astype(np.int32)
        if side is Side.ORIGIN:
            return pointer, Nodes(child, destination)
        return pointer, Nodes(origin, child)

    def _split(self, level: int, nodes: Nodes) -> tuple[NDArray[np.int64], Positions]:
        """The row pointer of the hierarchy that is split, and the nodes' areas in it."""
        origin, destination = self.shape.depths(level)
        if self.shape.steps[level] is Side.ORIGIN:
            return self.origins.child_start[origin], nodes.origin
        return self.destinations.child_start[destination], nodes.destination


def runs_of_families(numbers: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Runs of whole families that cover all, with about `most` children each."""
    before = np.concatenate([[0], np.cumsum(numbers)])
    first = 0
    while first < numbers.size:
        last = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        last = min(max(last, first + 1), numbers.size)
        yield first, last
        first = last
