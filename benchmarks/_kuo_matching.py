"""The cumulative method of Kuo, Chiu, Kifer, Hay and Machanavajjhala, a peer of ours.

PVLDB 2018, arXiv:1804.00370. Each region's noisy cumulative counts are made monotone in the L1
norm on their own. From the root down, the groups of a region, sorted by size, are matched with
those of its children, sorted together; a child's group gets the average of the two sizes, weighted
by the reciprocals of their estimated variances, in proportion to 1 / (groups of that size). Leaves
are rounded and added up.

Written from the paper and the authors' published program; groups of equal size are matched in
random order, where theirs splits them in proportion.
"""

from __future__ import annotations

from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from trellis.model import Hierarchy

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def kuo_matching(
    tree: Hierarchy, noisy: list[IntArray], groups: IntArray, seed: int = 0
) -> list[IntArray]:
    """Whole tables per level from noisy cumulative counts, regions x (sizes - 1)."""
    rng = np.random.default_rng(seed)
    n_sizes = noisy[0].shape[1] + 1
    totals = tree.sum_up(groups)
    fitted = [
        [_sizes_and_variances(row, int(g)) for row, g in zip(rows, total, strict=True)]
        for rows, total in zip(noisy, totals, strict=True)
    ]
    for level in range(tree.leaf_level):
        start = tree.child_start[level]
        for node, parent in enumerate(fitted[level]):
            children = range(start[node], start[node + 1])
            matched = _match(parent, [fitted[level + 1][c] for c in children], rng)
            for child, values in zip(children, matched, strict=True):
                fitted[level + 1][child] = values
    leaves = np.zeros((tree.sizes[-1], n_sizes), np.int64)
    for leaf, (sizes, _) in enumerate(fitted[-1]):
        leaves[leaf] = np.bincount(np.rint(sizes).astype(np.int64), minlength=n_sizes)
    return tree.sum_up(leaves)


def isotonic_l1(values: IntArray) -> IntArray:
    """A nearest non-decreasing sequence in the L1 norm: the largest value so far gives way."""
    heap: list[int] = []
    tops = []
    for value in values.tolist():
        heappush(heap, -value)
        if -heap[0] > value:
            heappushpop(heap, -value)
        tops.append(-heap[0])
    return np.minimum.accumulate(np.array(tops[::-1]))[::-1]


def _sizes_and_variances(noisy: IntArray, groups: int) -> tuple[FloatArray, FloatArray]:
    """A region's groups as a sorted list of sizes, each with a variance up to a factor."""
    cumulative = np.append(np.clip(isotonic_l1(noisy), 0, groups), groups)
    counts = np.diff(cumulative, prepend=0)
    sizes = np.repeat(np.arange(counts.size), counts)
    return sizes.astype(np.float64), 1 / counts[sizes]


def _match(
    parent: tuple[FloatArray, FloatArray],
    children: list[tuple[FloatArray, FloatArray]],
    rng: np.random.Generator,
) -> list[tuple[FloatArray, FloatArray]]:
    sizes = np.concatenate([child[0] for child in children])
    variances = np.concatenate([child[1] for child in children])
    order = np.lexsort((rng.random(sizes.size), sizes))
    by_size = np.argsort(parent[0], kind="stable")
    parent_size, parent_variance = parent[0][by_size], parent[1][by_size]
    precision = 1 / variances[order] + 1 / parent_variance
    merged, merged_variance = np.empty_like(sizes), np.empty_like(sizes)
    merged[order] = (sizes[order] / variances[order] + parent_size / parent_variance) / precision
    merged_variance[order] = 1 / precision
    cuts = np.cumsum([child[0].size for child in children])[:-1]
    return list(zip(np.split(merged, cuts), np.split(merged_variance, cuts), strict=True))
