r"""Best linear unbiased estimates on a tree: what proves them, and how uncertain they are.

**Centres** c minimise sum_v (z_v - c_v)^2 / s_v^2 over all c that add up. They do if and only if
h, the sum of (z - c) / s^2 along the path from a node down to a leaf, is the same for all leaves
below the node, and 0 for the root. So, from the leaves up, siblings must have the same h; an exact
node may have any, since its constraint has a multiplier of its own. Where the root's columns have
an exact sum, their h must agree instead of being 0. Each h is compared in units of counts: the
estimate of a node from its own subtree is c + v h, with the variance v of that estimate.

**Variances** combine what is known inside a subtree with what is known outside: precisions add
where evidence about one number meets, variances where independent numbers are added.

Where the exact sum of C columns is known, a column is its share of that sum plus a contrast. Sum
and contrasts are measured independently: of the variance, 1/C is that on a tree with an exact root,
and 1 - 1/C that on the tree without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trellis.verify.counts.families import Families
from trellis.verify.counts.measured_tree import MeasuredTree

ROUNDING = 1e-12
"""Of the numbers that were added up, what floating-point arithmetic may have lost."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelFit:
    """One level: whether the centres are optimal there, and estimates from each node's subtree.

    `subtree` (nodes x columns) has variance `variance` (nodes) and is uncertain by `slack` from
    rounding alone. Where nothing is known below, the variance is infinite and the estimate 0.
    """

    index: int
    is_optimal: bool
    subtree: np.ndarray
    variance: np.ndarray
    slack: np.ndarray


def level_fits(tree: MeasuredTree, centres: list[np.ndarray]) -> Iterator[LevelFit]:
    """From the leaves to the root."""
    below, variances = None, subtree_variances(tree)
    for index in reversed(range(len(centres))):
        centre, variance = centres[index], variances[index][:, np.newaxis]
        own, value = tree.variance[index][:, np.newaxis], tree.values[index]
        is_exact, is_measured = own == 0, np.isfinite(own)
        residual = np.where(is_measured, value - centre, 0.0)
        pull = np.divide(residual, own, out=np.zeros_like(centre), where=is_measured & ~is_exact)
        size = np.abs(centre) + np.where(is_measured, np.abs(value), 0.0) + 1.0
        if below is not None:
            pull, size = pull + below[0], size + below[1]
        slack = ROUNDING * size
        is_kept = not (np.abs(residual)[is_exact[:, 0]] > slack[is_exact[:, 0]]).any()
        if index:
            common = _common(tree.families[index - 1], pull, variance)
            parent = tree.families[index - 1].parent
            allowed = slack + ROUNDING * tree.families[index - 1].sum(size)[parent]
            gap = _times(variance, pull - common[parent])
            below = common, tree.families[index - 1].sum(size)
        else:
            mean = 0.0 if tree.root_sum is None else pull.mean()
            gap, allowed = _times(variance, pull - mean), slack
            if tree.root_sum is not None:
                is_kept &= abs(centre.sum() - tree.root_sum) <= slack.sum()
        fine = is_kept and bool((np.abs(gap) <= allowed).all())
        known = np.isfinite(variance)
        subtree = np.where(known, centre + _times(variance, pull), 0.0)
        yield LevelFit(index, fine, subtree, variance[:, 0], slack)


def subtree_variances(tree: MeasuredTree) -> list[np.ndarray]:
    """Of each node's estimate from what was measured at it and below it, root first."""
    found = [tree.variance[-1]]
    for own, family in zip(tree.variance[-2::-1], tree.families[::-1], strict=True):
        found.append(combined(own, family.sum(found[-1])))
    return found[::-1]


def combined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of the best estimate from two independent ones of a number; 0 and infinity are allowed."""
    with np.errstate(divide="ignore"):
        return 1 / (1 / one + 1 / other)


def final_variances(tree: MeasuredTree) -> list[np.ndarray]:
    """Of every node's estimate from all measurements, root first; the columns share it."""
    if tree.root_sum is None:
        return _on_tree(tree)
    return [
        contrast + (total - contrast) / tree.width
        for contrast, total in zip(_on_tree(tree), _on_tree(tree.with_exact_root), strict=True)
    ]


def _on_tree(tree: MeasuredTree) -> list[np.ndarray]:
    inside = subtree_variances(tree)
    outside, found = np.full(1, np.inf), [inside[0]]
    for index, family in enumerate(tree.families):
        parent = combined(tree.variance[index], outside)
        outside = parent[family.parent] + _of_siblings(family, inside[index + 1])
        found.append(combined(inside[index + 1], outside))
    return found


def _of_siblings(family: Families, variance: np.ndarray) -> np.ndarray:
    """The variances of all other children of the same parent, added."""
    is_open = np.isinf(variance)
    finite = np.where(is_open, 0.0, variance)
    others = np.maximum(family.sum(finite)[family.parent] - finite, 0.0)
    if not is_open.any():
        return others
    n_open = family.sum(is_open.astype(np.int64))[family.parent] - is_open
    return np.where(n_open > 0, np.inf, others)


def _common(family: Families, pull: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """What the pulls of siblings agree on: their mean, weighted by variances.

    An unmeasured child is pulled by nothing, and then so are its siblings.
    """
    total = family.sum(variance)
    finite = np.where(np.isfinite(variance), variance, 0.0)
    sums = family.sum(finite * pull)
    return np.divide(sums, total, out=np.zeros_like(sums), where=(total > 0) & np.isfinite(total))


def _times(variance: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """0 for a node without a variance of its own to compare with."""
    return np.where(np.isfinite(variance), variance, 0.0) * pull
