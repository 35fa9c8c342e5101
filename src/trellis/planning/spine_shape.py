r"""Variances of best linear unbiased estimates, from the shape of the tree alone.

The recursions are those of `trellis.numerics.tree_gls`, written for whole levels. With p the
precision (1 / variance) of a level's measurements, 0 where nothing is measured,

    up:    v = V / (1 + p V),  V = sum of v over the children     (a leaf: v = 1 / p),
    down:  Var_c = v_c (1 - b) + b^2 Var_parent,  b = v_c / V     (root: v);

levels with exact totals have variance 0. Children of one parent are alike where they are leaves, so
all leaves of a family are kept as one number: on a national tree that is one for thirty areas. The
passes hold for complex precisions too: an imaginary step gives exact derivatives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.model.hierarchy import Hierarchy

Numbers = NDArray[Any]
"""Floats, or complex numbers with an imaginary step."""


@dataclass(frozen=True, slots=True, eq=False)
class SpineShape:
    """A tree without names; the leaves of a family are one entry of the last level."""

    child_start: tuple[NDArray[np.int64], ...]  # of all levels but the last two
    family_sizes: NDArray[np.int64]  # leaves by parent
    published: tuple[NDArray[np.int64], ...]  # areas that are published, by entry and level

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> SpineShape:
        areas = [(~passing).astype(np.int64) for passing in hierarchy.passes_through]
        if hierarchy.n_levels == 1:
            return cls((), np.ones(1, dtype=np.int64), (areas[0],))
        families = hierarchy.child_start[-1]
        areas[-1] = np.add.reduceat(areas[-1], families[:-1])
        return cls(hierarchy.child_start[:-1], np.diff(families), tuple(areas))

    @property
    def n_levels(self) -> int:
        return len(self.published)

    def variances(self, precision: Sequence[complex], exact: Collection[int] = ()) -> list[Numbers]:
        """Variance of every entry's estimate, by level; `precision` has one number per level."""
        below = self._up(precision, exact)
        final = [below[0]]
        for level in range(1, self.n_levels):
            v, above = below[level], final[-1]
            if level in exact:
                final.append(np.zeros_like(v))
            elif level == self.n_levels - 1:
                n = self.family_sizes
                final.append(v * (1 - 1 / n) + above / n**2)
            else:
                start = self.child_start[level - 1]
                sizes = np.diff(start)
                share = v / np.repeat(np.add.reduceat(v, start[:-1]), sizes)
                final.append(v * (1 - share) + share**2 * np.repeat(above, sizes))
        return final

    def _up(self, precision: Sequence[complex], exact: Collection[int]) -> list[Numbers]:
        last = self.n_levels - 1
        levels = [np.full(self.family_sizes.size, 1 / precision[last])]
        for level in reversed(range(last)):
            if level == last - 1:
                total = levels[0] * self.family_sizes
            else:
                total = np.add.reduceat(levels[0], self.child_start[level][:-1])
            known = total / (1 + precision[level] * total)
            levels.insert(0, np.zeros_like(known) if level in exact else known)
        return levels
