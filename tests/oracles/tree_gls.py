"""Generalised least squares through the dense matrix of nodes by leaves."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from trellis.model import Hierarchy


def design(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Row per node, root first; 1 for each leaf below it."""
    return np.vstack(hierarchy.sum_up(np.eye(hierarchy.sizes[-1])))


def dense_gls(
    hierarchy: Hierarchy, noisy: Sequence[NDArray], variance: Sequence[NDArray]
) -> tuple[list[NDArray], list[NDArray]] | None:
    """Estimates and variances per level; None if the measurements leave a leaf undetermined.

    Exact totals are constraints: a particular solution plus their null space, in which the
    remaining measurements are fitted.
    """
    nodes = design(hierarchy)
    z, s2 = np.concatenate(noisy), np.concatenate(variance)
    exact, measured = s2 == 0, (s2 > 0) & (s2 < inf)
    particular = np.zeros(nodes.shape[1])
    free = np.eye(nodes.shape[1])
    if exact.any():
        particular = np.linalg.lstsq(nodes[exact], z[exact], rcond=1e-10)[0]
        free = null_space(nodes[exact], rcond=1e-10)
    rows = nodes[measured] @ free / np.sqrt(s2[measured])[:, np.newaxis]
    if np.linalg.matrix_rank(rows, tol=1e-8) < free.shape[1]:
        return None
    residual = (z[measured] - nodes[measured] @ particular) / np.sqrt(s2[measured])
    leaves = particular + free @ np.linalg.lstsq(rows, residual, rcond=None)[0]
    covariance = free @ np.linalg.inv(rows.T @ rows) @ free.T
    estimates = nodes @ leaves
    variances = np.einsum("ij,jk,ik->i", nodes, covariance, nodes)
    ends = np.cumsum(hierarchy.sizes)[:-1]
    return np.split(estimates, ends), np.split(variances, ends)


def subtree(
    hierarchy: Hierarchy, level: int, node: int, *per_level: Sequence[NDArray]
) -> tuple[Hierarchy, list[list[NDArray]]]:
    """One node and all below it as a hierarchy of its own, with its part of each array."""
    parts, first, last = [slice(node, node + 1)], node, node + 1
    starts = []
    for start in hierarchy.child_start[level:]:
        starts.append(start[first : last + 1] - start[first])
        first, last = int(start[first]), int(start[last])
        parts.append(slice(first, last))

    def cut(arrays: Sequence[NDArray]) -> list[NDArray]:
        return [array[part] for array, part in zip(arrays[level:], parts, strict=True)]

    own = Hierarchy(
        hierarchy.level_names[level:],
        tuple(cut(hierarchy.node_codes)),
        tuple(starts),
        # Below an area that ends early there is nothing but padding, which counts as areas here.
        tuple(np.zeros_like(marks) for marks in cut(hierarchy.passes_through)),
    )
    return own, [cut(arrays) for arrays in per_level]
