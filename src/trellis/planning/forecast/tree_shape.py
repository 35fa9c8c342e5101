r"""Covariances of best linear unbiased estimates, from the shape of the tree alone.

The recursions are those of `trellis.numerics.histograms.tree_covariances`, for one subspace of the
algebra of queries: numbers for counts, small matrices where recodes are measured. With L the
precision of a level's measurements,

    up:    S = (sum_c P_c)^-1,  P = (L + S)^-1                    (a leaf: P = L^-1),
    down:  K_c = P_c + P_c Z P_c,  Z = S K_p S - S                (root: K = P).

Leaves of one parent are alike, so they are kept as one entry: on a national tree that is one for
thirty areas. The derivatives of any weighted sum of the K by the L of all levels take one pass back
through both recursions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.histograms.tree_covariances import inverse

Floats = NDArray[np.float64]
Matrices = NDArray[np.float64]
"""Entries x a x a."""
Free = Sequence[NDArray[np.bool_]]
"""By level, the coordinates that are not known exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeShape:
    """A tree without names; the leaves of a family are one entry of the last level."""

    child_start: tuple[NDArray[np.int64], ...]  # of all levels but the last two
    family_sizes: NDArray[np.int64]  # leaves by parent
    published: tuple[NDArray[np.int64], ...]  # areas that are published, by entry and level

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> TreeShape:
        areas = [(~passing).astype(np.int64) for passing in hierarchy.passes_through]
        if hierarchy.n_levels == 1:
            return cls((), np.ones(1, dtype=np.int64), (areas[0],))
        families = hierarchy.child_start[-1]
        areas[-1] = np.add.reduceat(areas[-1], families[:-1])
        return cls(hierarchy.child_start[:-1], np.diff(families), tuple(areas))

    @property
    def n_levels(self) -> int:
        return len(self.published)

    def solve(self, precision: Sequence[Floats], free: Free) -> SolvedTree:
        """Both passes; `precision` has one matrix per level."""
        leaf = inverse(precision[-1][np.newaxis], free[-1])
        subtree: list[Matrices] = [leaf]
        below: list[Matrices] = []
        for level in reversed(range(self.n_levels - 1)):
            if level == self.n_levels - 2:
                # The family's size alone decides.
                sizes, which = np.unique(self.family_sizes, return_inverse=True)
                total = leaf * sizes[:, np.newaxis, np.newaxis]
            else:
                total = self.sum_children(level, subtree[0])
                which = np.arange(len(total))
            s = inverse(total, free[level + 1])
            below.insert(0, s[which])
            subtree.insert(0, inverse(precision[level] + s, free[level])[which])
        return SolvedTree(self, subtree, below, self._down(subtree, below))

    def _down(self, subtree: list[Matrices], below: list[Matrices]) -> list[Matrices]:
        final = [subtree[0]]
        for level in range(1, self.n_levels - 1):
            p, s = subtree[level], below[level - 1]
            z = self.hand_down(level, times(s, final[-1], s) - s)
            final.append(p + times(p, z, p))
        if self.n_levels > 1:
            n = self.family_sizes[:, np.newaxis, np.newaxis]
            final.append(subtree[-1] * (1 - 1 / n) + final[-1] / n**2)
        return final

    def sum_children(self, level: int, values: Matrices) -> Matrices:
        """Sums over the children of each node of an inner level."""
        return np.add.reduceat(values, self.child_start[level][:-1], axis=0)

    def hand_down(self, level: int, values: Matrices) -> Matrices:
        """What the parents of an inner level have, for each of its nodes."""
        return np.repeat(values, np.diff(self.child_start[level - 1]), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class SolvedTree:
    """Covariances of subtrees (P), precisions of what is below (S), final covariances (K)."""

    shape: TreeShape
    subtree: list[Matrices]
    below: list[Matrices]
    final: list[Matrices]

    def slopes(self, loads: Mapping[int, Matrices]) -> list[Floats]:
        """Derivatives of sum_n <B_n, K_n> by the precisions of all levels; `loads` are the B."""
        last = self.shape.n_levels - 1
        by_subtree, by_below, by_leaf = self._back_up(loads)
        slopes = []
        for level in range(last):
            p, s = self.subtree[level], self.below[level]
            by_sum = -times(p, by_subtree[level], p)
            slopes.append(by_sum.sum(axis=0))
            by_below[level] = by_below[level] + by_sum
            by_children = -times(s, by_below[level], s)
            if level < last - 1:
                by_subtree[level + 1] += self.shape.hand_down(level + 1, by_children)
            else:
                n = self.shape.family_sizes[:, np.newaxis, np.newaxis]
                by_leaf = by_leaf + (by_children * n).sum(axis=0)
        leaf = self.subtree[-1][0]
        return [*slopes, -leaf @ by_leaf @ leaf]

    def _back_up(
        self, loads: Mapping[int, Matrices]
    ) -> tuple[list[Matrices], list[Matrices], Floats]:
        """The pass down, backwards: derivatives by P and S of all levels, and by the leaf's P."""
        last, shape = self.shape.n_levels - 1, self.shape
        load = [loads.get(level, np.zeros_like(k)) for level, k in enumerate(self.final)]
        if last == 0:
            return [], [], load[0].sum(axis=0)
        n = shape.family_sizes[:, np.newaxis, np.newaxis]
        by_leaf = (load[-1] * (1 - 1 / n)).sum(axis=0)
        by_final = load[-2] + load[-1] / n**2
        by_subtree: list[Matrices] = []
        by_below: list[Matrices] = [np.zeros_like(self.below[-1])]
        for level in reversed(range(1, last)):
            p, s, k = self.subtree[level], self.below[level - 1], self.final[level - 1]
            z = shape.hand_down(level, times(s, k, s) - s)
            cross = times(by_final, p, z)
            by_subtree.insert(0, by_final + cross + _turned(cross))
            by_z = shape.sum_children(level - 1, times(p, by_final, p))
            cross = times(by_z, s, k)
            by_below.insert(0, cross + _turned(cross) - by_z)
            by_final = load[level - 1] + times(s, by_z, s)
        return [by_final, *by_subtree], by_below, by_leaf


def times(*factors: Matrices) -> Matrices:
    """Products of matrices, entry by entry."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor if factor.shape[-1] == 1 else product @ factor
    return product


def _turned(matrices: Matrices) -> Matrices:
    return matrices.transpose(0, 2, 1)
