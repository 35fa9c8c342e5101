"""The levels of a hierarchy that were measured, as a tree of their own, or a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.model import Hierarchy
from trellis.model.arrays import Ints


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLevels:
    """Levels `kept` of the hierarchy, the last one among them.

    A level that was not measured says nothing and asks nothing: its children become those of the
    level above, and its values are sums. Without the root there are several trees.
    """

    hierarchy: Hierarchy
    kept: tuple[int, ...]

    @property
    def sizes(self) -> list[int]:
        return [self.hierarchy.size(level) for level in self.kept]

    @property
    def row_start(self) -> Ints:
        """Where each kept level begins when all are stacked, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def child_start(self, position: int) -> Ints:
        """The row pointer from a kept level to the next one."""
        upper, lower = self.kept[position : position + 2]
        pointer = self.hierarchy.child_start[upper]
        for level in range(upper + 1, lower):
            pointer = self.hierarchy.child_start[level][pointer]
        return pointer

    def stack(self, tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Kept levels of one array per level, one above the other."""
        return np.concatenate([tables[level] for level in self.kept])

    def split(self, stacked: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(stacked, self.row_start[1:-1])

    def fill(self, fitted: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """All levels, root first, from the kept ones."""
        levels = dict(zip(self.kept, fitted, strict=True))
        for level in reversed(range(self.hierarchy.n_levels)):
            if level not in levels:
                levels[level] = self.hierarchy.sum_children(level, levels[level + 1])
        return [levels[level] for level in range(self.hierarchy.n_levels)]
