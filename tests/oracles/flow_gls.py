"""Generalised least squares on a measured tree of flows, through the dense matrix.

Nodes are rows of level tables as the measurements hold them. What is unknown are the nodes below
which nothing was measured; every other node is the sum of some of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def dense_flow_gls(
    parents: list[NDArray], values: list[NDArray], variances: list[float]
) -> tuple[list[NDArray], list[NDArray]]:
    """Estimates and variances of all measured nodes, per level.

    `parents` holds for each node the position of its parent among all nodes of the level above.
    A variance of zero, on the root alone, is a constraint.
    """
    sizes = [v.size for v in values]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    above = [np.full(1, -1), *(p + begins[i] for i, p in enumerate(parents[1:]))]
    parent = np.concatenate(above)
    ends = np.setdiff1d(np.arange(parent.size), parent)
    design = np.zeros((parent.size, ends.size))
    for column, node in enumerate(ends):
        while node >= 0:
            design[node, column] = 1
            node = parent[node]
    z = np.concatenate(values).astype(float)
    s2 = np.repeat(np.asarray(variances, dtype=float), sizes)
    noisy = s2 > 0
    if not noisy.any():  # an exact total of nothing, and nothing below it
        return [v.astype(float) for v in values], [np.zeros(n) for n in sizes]
    precision = design[noisy].T @ (design[noisy] / s2[noisy, None])
    covariance = np.linalg.inv(precision)
    found = covariance @ design[noisy].T @ (z[noisy] / s2[noisy])
    if not noisy[0]:  # condition on the exact total
        all_of = covariance.sum(axis=1)
        found = found + all_of * (z[0] - found.sum()) / all_of.sum()
        covariance = covariance - np.outer(all_of, all_of) / all_of.sum()
    estimates = design @ found
    spread = np.einsum("ij,jk,ik->i", design, covariance, design)
    cuts = begins[1:-1]
    return np.split(estimates, cuts), np.split(spread, cuts)
