"""Slow twins of the group-size kernels: no convexity, no pruning, no arrays of prices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from oracles.projection import priorities
from trellis.model import Hierarchy

# -- whole-number least squares -------------------------------------------------------------------


def objective(fitted: Sequence, noisy: Sequence, weights: Sequence) -> int:
    return sum(
        w * int(((np.asarray(x) - np.asarray(y)) ** 2).sum())
        for x, y, w in zip(fitted, noisy, weights, strict=True)
    )


def least_objective(
    tree: Hierarchy, noisy: Sequence, weights: Sequence[int], total: int | None, most: int
) -> int:
    """The minimum by dynamic programming over all counts 0 .. most of every node.

    Tables of costs are combined by trying all ways to split a count, so nothing is assumed about
    their shape.
    """

    def costs(level: int, node: int, size: int) -> NDArray[np.int64]:
        own = weights[level] * (np.arange(most + 1) - int(noisy[level][node, size])) ** 2
        if level == tree.leaf_level:
            return own
        start = tree.child_start[level]
        below = None
        for child in range(start[node], start[node + 1]):
            table = costs(level + 1, child, size)
            below = table if below is None else min_plus(below, table)
        return own + below

    combined = None
    for size in range(np.shape(noisy[0])[1]):
        table = costs(0, 0, size)
        combined = table if combined is None else min_plus(combined, table)
        if total is None:  # sizes have nothing to do with one another
            combined = np.full(most + 1, combined.min())
    return int(combined.min() if total is None else combined[total])


def min_plus(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """c[v] = min over k of a[k] + b[v - k]."""
    n = a.size
    padded = np.concatenate([np.full(n, 2**50), b])
    split = padded[n + np.arange(n)[:, None] - np.arange(n)[None, :]]
    return (a[None, :] + split).min(axis=1)


def buy_cheapest_units(
    tree: Hierarchy, noisy: Sequence, total: int, weights: Sequence[int], seed: int = 0
) -> list[NDArray[np.int64]]:
    """The same optimum by writing down the prices of all units, ties by priority.

    A node takes its children's units by price, then by the children's priorities.
    """
    n_sizes = np.shape(noisy[0])[1]
    offsets = np.concatenate([[0], np.cumsum(tree.sizes)])
    rank = priorities(seed, 0, int(offsets[-1]) * n_sizes)
    out = [np.zeros((n, n_sizes), np.int64) for n in tree.sizes]

    def children(level: int, node: int) -> range:
        return range(*tree.child_start[level][node : node + 2].tolist())

    def units(level: int, node: int, size: int) -> list[tuple[int, int, int]]:
        """(price, priority, child) of the first `total` units, cheapest first."""
        weight, value = weights[level], int(noisy[level][node, size])
        if level == tree.leaf_level:
            return [(weight * (2 * k + 1 - 2 * value), 0, 0) for k in range(total)]
        ordered = taken(level, node, size, total)
        return [
            (price + weight * (2 * k + 1 - 2 * value), r, child)
            for k, (price, r, child) in enumerate(ordered)
        ]

    def taken(level: int, node: int, size: int, count: int) -> list[tuple[int, int, int]]:
        offers = [
            (price, rank[(offsets[level + 1] + child) * n_sizes + size], child)
            for child in children(level, node)
            for price, _, _ in units(level + 1, child, size)
        ]
        return sorted(offers)[:count]

    def hand_down(level: int, node: int, size: int, count: int) -> None:
        out[level][node, size] = count
        if level < tree.leaf_level:
            got = [child for _, _, child in taken(level, node, size, count)]
            for child in children(level, node):
                hand_down(level + 1, child, size, got.count(child))

    offers = [
        (price, rank[size], size) for size in range(n_sizes) for price, _, _ in units(0, 0, size)
    ]
    bought = [size for _, _, size in sorted(offers)[:total]]
    for size in range(n_sizes):
        hand_down(0, 0, size, bought.count(size))
    return out


def can_be_improved(
    tree: Hierarchy, fitted: Sequence, noisy: Sequence, weights: Sequence[int]
) -> bool:
    """Whether moving one unit from one leaf cell to another lowers the cost, in Python's integers.

    Costs on a tree are M-convex, so a table that no such move improves is optimal.
    """
    paths = [[leaf] for leaf in range(tree.sizes[-1])]
    for level in reversed(range(tree.leaf_level)):
        parents = tree.parents(level + 1)
        for path in paths:
            path.insert(0, int(parents[path[0]]))
    n_sizes = np.shape(noisy[0])[1]
    cells = [(leaf, s) for leaf in range(len(paths)) for s in range(n_sizes)]

    def change(source: tuple[int, int], target: tuple[int, int]) -> int:
        moves: dict[tuple[int, int, int], int] = {}
        for (leaf, s), sign in ((source, -1), (target, 1)):
            for level, node in enumerate(paths[leaf]):
                moves[level, node, s] = moves.get((level, node, s), 0) + sign
        cost = 0
        for (level, node, s), d in moves.items():
            gap = int(fitted[level][node, s]) - int(noisy[level][node, s])
            cost += weights[level] * ((gap + d) ** 2 - gap**2)
        return cost

    return any(
        change(source, target) < 0
        for source in cells
        if fitted[-1][source] > 0
        for target in cells
        if target != source
    )


# -- isotonic regression --------------------------------------------------------------------------


def isotonic_by_means(values: Sequence[float]) -> list[float]:
    """x_i = max over a <= i of min over b >= i of the mean of values a .. b."""
    n = len(values)

    def mean(a: int, b: int) -> float:
        return sum(values[a : b + 1]) / (b + 1 - a)

    return [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


def least_isotonic_objective(values: Sequence[int], high: int) -> int:
    """The minimum over all non-decreasing whole sequences within 0 .. high."""
    best = [0] * (high + 1)  # by the last level used
    for value in values:
        best = [min(best[: level + 1]) + (level - value) ** 2 for level in range(high + 1)]
    return min(best)


# -- joint least squares --------------------------------------------------------------------------


def leaves_of_nodes(tree: Hierarchy) -> list[NDArray[np.float64]]:
    """Per level, a matrix that adds up leaves: nodes x leaves."""
    matrices = [np.eye(tree.sizes[-1])]
    for level in reversed(range(tree.leaf_level)):
        matrices.insert(0, tree.sum_children(level, matrices[0]))
    return matrices


def real_optimum(
    tree: Hierarchy, noisy: Sequence, weights: Sequence[float], total: int
) -> list[NDArray[np.float64]]:
    """Least squares over real counts >= 0 that add up, by a general solver."""
    n_leaves, n_sizes = np.shape(noisy[-1])
    rows = [np.kron(m, np.eye(n_sizes)) * w**0.5 for m, w in _weighted(tree, weights)]
    target = np.concatenate([np.ravel(y) * w**0.5 for y, w in zip(noisy, weights, strict=True)])
    ones = np.ones((1, n_leaves * n_sizes))
    x = _least_squares(np.vstack(rows), target, ones, np.array([total]), equal=True)
    leaves = x.reshape(n_leaves, n_sizes)
    return [m @ leaves for m in leaves_of_nodes(tree)]


def joint_optimum(
    tree: Hierarchy, noisy: Sequence, weights: Sequence[float], groups: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Least squares over cumulative counts that add up, grow and stay below `groups`."""
    n_leaves, n_columns = np.shape(noisy[-1])
    summing = np.tril(np.ones((n_columns, n_columns)))  # from increments to cumulative counts
    rows = [np.kron(m, summing) * w**0.5 for m, w in _weighted(tree, weights)]
    target = np.concatenate([np.ravel(y) * w**0.5 for y, w in zip(noisy, weights, strict=True)])
    sums = np.kron(np.eye(n_leaves), np.ones((1, n_columns)))
    x = _least_squares(np.vstack(rows), target, sums, groups, equal=False)
    leaves = x.reshape(n_leaves, n_columns) @ summing.T
    return [m @ leaves for m in leaves_of_nodes(tree)]


def _weighted(tree: Hierarchy, weights: Sequence[float]):
    return zip(leaves_of_nodes(tree), weights, strict=True)


def _least_squares(a, b, constraint, bound, equal: bool) -> NDArray[np.float64]:
    """Minimise |a x - b|^2 over x >= 0 with constraint @ x == bound, or <= bound.

    Non-negative least squares with the constraint as rows of great weight, its error fed back into
    the bound until none is left (the method of multipliers).
    """
    heavy = 30.0 * np.linalg.norm(a)
    n_slack = 0 if equal else len(bound)
    a = np.hstack([a, np.zeros((len(a), n_slack))])
    constraint = np.hstack([constraint, np.eye(len(bound))[:, :n_slack]])
    stacked, shifted = np.vstack([a, heavy * constraint]), np.asarray(bound, dtype=np.float64)
    for _ in range(200):
        x, _ = nnls(stacked, np.concatenate([b, heavy * shifted]))
        error = bound - constraint @ x
        if np.abs(error).max() < 1e-10:
            break
        shifted = shifted + error
    return x[: len(x) - n_slack]
