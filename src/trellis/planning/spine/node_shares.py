"""The share of every node: few different values, so a number per node and a list of values.

A share is the part of the budget that is spent on a node. What one record can cost is what is
spent on the path from the root to its leaf, so the shares of every path sum to one: exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.hierarchy import Hierarchy
from trellis.model.spine import distinct_paths

Classes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class NodeShares:
    """The share of node i of a level is `values[classes[level][i]]`."""

    values: tuple[Fraction, ...]
    classes: tuple[Classes, ...]

    @classmethod
    def of(cls, hierarchy: Hierarchy, shares: Sequence[Fraction | Sequence[Fraction]]) -> Self:
        """From one fraction, or one per node, for each level."""
        if len(shares) != hierarchy.n_levels:
            raise StructureError(f"{len(shares)} lists of shares for {hierarchy.n_levels} levels.")
        known: dict[Fraction, int] = {}
        classes = []
        for name, size, level in zip(hierarchy.level_names, hierarchy.sizes, shares, strict=True):
            given = [level] * 1 if isinstance(level, Fraction | int) else list(level)
            for share in given:
                if not isinstance(share, Fraction | int) or isinstance(share, bool) or share < 0:
                    raise StructureError(
                        f"Shares of level {name!r} must be fractions of at least 0; "
                        f"{share!r} is none."
                    )
            numbers = [known.setdefault(Fraction(share), len(known)) for share in given]
            if len(numbers) not in (1, size):
                raise StructureError(f"Level {name!r} needs one share, or {size} of them.")
            classes.append(np.array(np.broadcast_to(np.array(numbers, np.int32), (size,))))
        return cls(tuple(known), tuple(classes))

    def as_lists(self) -> list[list[Fraction]]:
        return [[self.values[i] for i in level.tolist()] for level in self.classes]

    def paths(self, hierarchy: Hierarchy) -> list[tuple[Fraction, ...]]:
        """The shares of every path from the root to a leaf, each combination once."""
        return [
            tuple(self.values[i] for i in path) for path in distinct_paths(hierarchy, self.classes)
        ]

    def require_one_on_every_path(self, hierarchy: Hierarchy) -> None:
        for path in self.paths(hierarchy):
            if (total := sum(path)) != 1:
                raise StructureError(
                    f"The shares of a path from the root to a leaf sum to {total}, not to one: "
                    f"{', '.join(map(str, path))}."
                )
