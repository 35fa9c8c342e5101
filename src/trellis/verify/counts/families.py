"""Families of a tree: sums, least and greatest values over the children of each parent."""

from __future__ import annotations

from typing import Self

import numpy as np

from trellis.verify.files.run_files import Level
from trellis.verify.files.safe_files import Unreadable


class Families:
    """The nodes of one level, grouped by their parents, who stand in order and have children."""

    def __init__(self, parent: np.ndarray, level: str) -> None:
        steps = np.diff(parent)
        if parent[0] != 0 or ((steps != 0) & (steps != 1)).any():
            raise Unreadable(f"level {level} does not list areas in the order of their parents")
        self.parent = parent
        self.start = np.flatnonzero(np.append(1, steps))

    @classmethod
    def of(cls, levels: list[Level]) -> list[Self]:
        """Those of every level but the root."""
        return [cls(level.parent, level.name) for level in levels[1:]]

    def sum(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.start, axis=0)

    def least(self, values: np.ndarray) -> np.ndarray:
        return np.minimum.reduceat(values, self.start, axis=0)

    def most(self, values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, self.start, axis=0)


def sums_up(families: list[Families], leaves: np.ndarray) -> list[np.ndarray]:
    """Values of every level, root first, as sums of the leaves."""
    levels = [leaves]
    for family in reversed(families):
        levels.append(family.sum(levels[-1]))
    return levels[::-1]
