"""Spines, slowly: recursions written out, dense matrices, all pairs tried in full."""

from __future__ import annotations

from itertools import product

import numpy as np

from oracles.tree_gls import design
from trellis.model import Hierarchy
from trellis.model.trees.areas import Category


def slow_distances(tree: Hierarchy, labels) -> dict[str, int]:
    """Algorithm 1, entity by entity and node by node."""
    found = {}
    for entity in sorted({label for label in labels if label is not None}):
        pairs = [(int(label == entity), int(label != entity)) for label in labels]
        for level in reversed(range(tree.n_levels - 1)):
            start = tree.child_start[level]
            above = []
            for node in range(tree.size(level)):
                children = pairs[start[node] : start[node + 1]]
                inside, outside = sum(c for c, _ in children), sum(c for _, c in children)
                above.append((min(inside, 1 + outside), min(outside, 1 + inside)))
            pairs = above
        found[entity] = pairs[0][0]
    return found


def distance_by_definition(tree: Hierarchy, labels) -> int:
    """The least number of nodes with signs whose sum is the indicator of the entity."""
    target = np.array([label is not None for label in labels], dtype=float)
    rows = np.unique(design(tree), axis=0)
    best = int(target.sum())
    for signs in product((-1, 0, 1), repeat=len(rows)):
        used = sum(map(abs, signs))
        if used < best and (np.array(signs) @ rows == target).all():
            best = used
    return best


def dense_area_variances(tree: Hierarchy, variance, category: Category):
    """1' Sigma 1 with the covariance of the leaves; exact totals as tiny variances are avoided."""
    from scipy.linalg import null_space

    nodes, s2 = design(tree), np.concatenate(variance)
    exact, measured = s2 == 0, (s2 > 0) & (s2 < np.inf)
    free = null_space(nodes[exact], rcond=1e-10) if exact.any() else np.eye(nodes.shape[1])
    rows = nodes[measured] @ free / np.sqrt(s2[measured])[:, np.newaxis]
    if np.linalg.matrix_rank(rows, tol=1e-8) < free.shape[1]:
        return None
    covariance = free @ np.linalg.inv(rows.T @ rows) @ free.T
    marks = category.member[np.newaxis] == np.arange(category.size)[:, np.newaxis]
    return np.einsum("ij,jk,ik->i", marks, covariance, marks)


def dense_area_slopes(tree: Hierarchy, variance, classes, category: Category):
    """Derivatives of the areas' variances by the precision of each class of nodes.

    The derivative by the precision of one node is minus the squared covariance of its estimate
    with the area's. Rows are areas, columns classes.
    """
    from scipy.linalg import null_space

    nodes, s2, of = design(tree), np.concatenate(variance), np.concatenate(classes)
    exact, measured = s2 == 0, (s2 > 0) & (s2 < np.inf)
    free = null_space(nodes[exact], rcond=1e-10) if exact.any() else np.eye(nodes.shape[1])
    rows = nodes[measured] @ free / np.sqrt(s2[measured])[:, np.newaxis]
    covariance = free @ np.linalg.inv(rows.T @ rows) @ free.T
    marks = category.member[:, np.newaxis] == np.arange(category.size)
    squared = (nodes @ covariance @ marks) ** 2
    return -np.array([squared[of == k].sum(axis=0) for k in range(of.max() + 1)]).T


def slow_groups(tree: Hierarchy, level: int, labels, limits) -> list[int]:
    """Algorithm 2 for the groups of a level: every distance anew for every pair."""
    group = list(range(tree.size(level)))

    def ranked(groups):
        return sorted(slow_distances(*_with_groups(tree, level, groups, labels)).values())[::-1]

    best, start = ranked(group), tree.child_start[level - 1]
    changed = True
    while changed:
        changed = False
        for parent in range(tree.size(level - 1)):
            nodes = range(start[parent], start[parent + 1])
            for left in nodes:
                for right in nodes:
                    if right <= left or group[left] != left or group[right] != right:
                        continue
                    merged = [left if g == right else g for g in group]
                    if merged.count(left) > limits[parent]:
                        continue
                    if (now := ranked(merged)) <= best:
                        group, best, changed = merged, now, True
    return group


def _with_groups(tree: Hierarchy, level: int, group, labels):
    """The tree with a level of groups, and the labels in the order of its leaves."""
    paths = []
    leaf_level = tree.leaf_level
    for leaf in range(tree.size(leaf_level)):
        path, node = [], leaf
        for at in range(leaf_level, -1, -1):
            path.append(f"{at}:{node:03d}")
            if at == level:
                path.append(f"g:{group[node]:03d}")
            if at:
                node = int(tree.parents(at)[node])
        paths.append((tuple(path[::-1]), labels[leaf]))
    paths.sort(key=lambda pair: pair[0])
    return Hierarchy.from_paths([p for p, _ in paths]), [label for _, label in paths]
