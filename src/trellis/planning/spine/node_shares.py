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
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import distinct_paths

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
            given = list(level) if isinstance(level, Sequence) else [level]
            for share in given:
                if not isinstance(share, Fraction | int) or isinstance(share, bool) or share < 0:
                    raise StructureError(
                        f"Shares of level {name!r} must be fractions of at least 0; {share!r} is "
                        "not."
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

    def require_determined(self, hierarchy: Hierarchy, known_levels: int = 0) -> None:
        """Nodes without a share must follow from others: at most one of a family may not.

        The totals of the first `known_levels` levels are known.
        """
        has_share = np.array([share > 0 for share in self.values])
        known = has_share[self.classes[-1]]
        for level in reversed(range(hierarchy.n_levels - 1)):
            start = hierarchy.child_start[level]
            unknown = np.add.reduceat((~known).astype(np.int64), start[:-1])
            if (unknown > 1).any():
                code = str(hierarchy.codes(level)[np.argmax(unknown > 1)])
                raise StructureError(
                    f"Two or more areas of level {hierarchy.level_names[level + 1]!r} in {code!r} "
                    "are not measured, nor determined by areas below them. Give the level a share."
                )
            known = has_share[self.classes[level]] | (unknown == 0) | (level < known_levels)
        if not known[0]:
            raise StructureError("The root is not measured, nor determined by areas below it.")

    def require_one_on_every_path(self, hierarchy: Hierarchy) -> None:
        for path in self.paths(hierarchy):
            if (total := sum(path)) != 1:
                raise StructureError(
                    f"The shares of a path from the root to a leaf sum to {total}, not to one: "
                    f"{', '.join(map(str, path))}."
                )
