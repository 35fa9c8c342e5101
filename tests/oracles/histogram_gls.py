"""Generalised least squares for histograms on a tree through one dense matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from oracles.histogram_family import matrix
from oracles.tree_gls import design


def dense_histogram_gls(hierarchy, schema, measured, values, zero_leaves=()):
    """Estimates (per level: nodes x cells) and the covariance of all leaf cells.

    `measured[level]` maps queries to variances, `values[level][query]` holds nodes x query cells.
    Exact answers are constraints, as in `tree_gls`; so are the cells of `zero_leaves`, which are 0.
    """
    nodes = np.split(design(hierarchy), np.cumsum(hierarchy.sizes)[:-1])
    rows, z, s2 = [], [], []
    for level, variances in enumerate(measured):
        for name, variance in variances.items():
            if variance < np.inf:
                block = np.kron(nodes[level], matrix(schema, name))
                rows.append(block)
                z.append(np.asarray(values[level][name], dtype=float).ravel())
                s2.append(np.full(len(block), variance))
    for leaf in zero_leaves:
        rows.append(np.kron(nodes[-1][[leaf]], np.eye(schema.n_cells)))
        z.append(np.zeros(schema.n_cells))
        s2.append(np.zeros(schema.n_cells))
    rows, z, s2 = np.vstack(rows), np.concatenate(z), np.concatenate(s2)
    exact = s2 == 0
    particular, free = np.zeros(rows.shape[1]), np.eye(rows.shape[1])
    if exact.any():
        particular = np.linalg.lstsq(rows[exact], z[exact], rcond=1e-10)[0]
        free = null_space(rows[exact], rcond=1e-10)
    a = rows[~exact] @ free / np.sqrt(s2[~exact])[:, np.newaxis]
    t = (z[~exact] - rows[~exact] @ particular) / np.sqrt(s2[~exact])
    leaves = particular + free @ np.linalg.lstsq(a, t, rcond=None)[0]
    covariance = free @ np.linalg.pinv(a.T @ a, rcond=1e-11) @ free.T
    estimates = [(np.kron(n, np.eye(schema.n_cells)) @ leaves).reshape(len(n), -1) for n in nodes]
    return estimates, covariance


def dense_marginal_variances(hierarchy, schema, covariance, level, name):
    """Nodes x query cells."""
    nodes = np.split(design(hierarchy), np.cumsum(hierarchy.sizes)[:-1])[level]
    rows = np.kron(nodes, matrix(schema, name))
    return np.einsum("ij,jk,ik->i", rows, covariance, rows).reshape(len(nodes), -1)
