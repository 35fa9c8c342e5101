r"""Variances of sums of leaves that form no node of the tree.

Given the total of a parent, the estimates of its children differ from their shares of it by errors
with covariances v_c [c = d] - v_c v_d / V, where V is the sum of their subtree variances v: what
the children miss of the total is divided in proportion to v. With beta, the part of a node's error
that an area of interest takes over (1 for its leaves), a family adds

    sum_c v_c (beta_c - beta)^2,    beta = sum_c v_c beta_c / V     (the unmeasured child's, if any)

and the root beta^2 times its own variance. Pairs (node, area) of nodes that share a leaf with the
area are all that is looked at; the rest of a family enters through V.
"""

from __future__ import annotations

import numpy as np

from trellis.verify.counts.families import Families
from trellis.verify.counts.linear import subtree_variances
from trellis.verify.counts.measured_tree import MeasuredTree
from trellis.verify.files.run_files import RunFiles

ALL_LEAVES, DRAWN = 1 << 24, 10_000
"""Up to so many leaves in areas all areas are looked at; above, so many of them."""


def draw(run: RunFiles, member: np.ndarray, what: str) -> np.ndarray:
    """The areas to look at; `member` is the area of each leaf, or -1. A sample is noted."""
    size = int(member.max(initial=-1)) + 1
    if np.count_nonzero(member >= 0) <= ALL_LEAVES or size <= DRAWN:
        return np.arange(size)
    run.notes.append(f"Standard errors of {DRAWN:,} of {size:,} {what} were computed again.")
    drawn = np.random.default_rng().choice(size, DRAWN, replace=False)  # seeded by the system
    return np.sort(drawn)


def entity_variances(
    tree: MeasuredTree, member: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For the chosen areas, variances, and the size of the numbers that were subtracted.

    `member` is the area of each leaf in the order of the tree, or -1.
    """
    if tree.root_sum is None:
        return _on_tree(tree, member, chosen)
    (contrast, size), (total, _) = (
        _on_tree(t, member, chosen) for t in (tree, tree.with_exact_root)
    )
    return contrast + (total - contrast) / tree.width, size


def _on_tree(
    tree: MeasuredTree, member: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    place = np.full(int(member.max(initial=-1)) + 2, -1)  # the last is that of no area
    place[chosen] = np.arange(chosen.size)
    area = place[member]
    node = np.flatnonzero(area >= 0)
    area, beta = area[node], np.ones(node.size)
    found, size = np.zeros(chosen.size), np.zeros(chosen.size)
    inside = subtree_variances(tree)
    for family, variance in zip(tree.families[::-1], inside[:0:-1], strict=True):
        node, area, beta = _one_level_up(family, variance, (node, area, beta), found, size)
    found[area] += beta**2 * inside[0][0]
    return found, size + found


def _one_level_up(
    family: Families,
    variance: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray],
    found: np.ndarray,
    size: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of the level above; what families add goes to `found`, and its size to `size`."""
    node, area, beta = pairs
    is_open = np.isinf(variance)
    finite = np.where(is_open, 0.0, variance)
    total, has_open = family.sum(finite), family.sum(is_open.astype(np.int64)) > 0
    keys = family.parent[node].astype(np.int64) * max(1, found.size) + area
    distinct, to = np.unique(keys, return_inverse=True)
    above, above_area = np.divmod(distinct, max(1, found.size))
    weighted = np.bincount(to, finite[node] * beta, distinct.size)
    squares = np.bincount(to, finite[node] * beta**2, distinct.size)
    share = np.divide(weighted, total[above], out=np.zeros(above.size), where=total[above] > 0)
    left = np.bincount(to, is_open[node] * beta, distinct.size)
    new = np.where(has_open[above], left, share)
    added = squares - 2 * new * weighted + new**2 * total[above]
    found += np.bincount(above_area, np.maximum(added, 0.0), found.size)
    size += np.bincount(above_area, squares, found.size)
    return above, above_area, new
