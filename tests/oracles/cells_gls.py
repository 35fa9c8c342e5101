"""Generalised least squares of all cells of all leaves at once, through dense matrices.

Reads the measurements query by query, and knows nothing of trees, recursions or the treatment of
exact totals in the package: exact answers are linear constraints like any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from trellis.model import Measurements
from trellis.model.tables.queries import TOTAL


def dense_cells_gls(measurements: Measurements) -> tuple[list[NDArray], list[NDArray]]:
    """Estimates and variances per level, areas x cells."""
    plan, tree = measurements.plan, measurements.hierarchy
    n_cells, n_leaves = plan.schema.n_cells, tree.sizes[-1]
    nodes = tree.sum_up(np.eye(n_leaves))  # per level: row per area, 1 for each leaf below
    constraints, targets, rows, values = [], [], [], []
    for query, answer in zip(plan.queries, measurements.values, strict=True):
        cells = np.ones((1, n_cells)) if query.query == TOTAL else np.eye(n_cells)
        design = np.kron(nodes[plan.levels.index(query.level)], cells)
        if query.noise is None:
            constraints.append(design)
            targets.append(answer.ravel())
        else:
            rows.append(design / query.noise.variance**0.5)
            values.append(answer.ravel() / query.noise.variance**0.5)
    size = n_leaves * n_cells
    exact, particular = np.vstack([np.zeros((0, size)), *constraints]), np.zeros(size)
    free = np.eye(size)
    if exact.size:
        particular = np.linalg.lstsq(exact, np.concatenate(targets), rcond=1e-10)[0]
        free = null_space(exact, rcond=1e-10)
    fitted = np.vstack(rows) @ free
    residual = np.concatenate(values) - np.vstack(rows) @ particular
    covariance = free @ np.linalg.inv(fitted.T @ fitted) @ free.T
    leaves = particular + free @ np.linalg.lstsq(fitted, residual, rcond=None)[0]
    everything = [np.kron(level, np.eye(n_cells)) for level in nodes]
    estimates = [(m @ leaves).reshape(-1, n_cells) for m in everything]
    variances = [np.einsum("ij,jk,ik->i", m, covariance, m) for m in everything]
    return estimates, [v.reshape(-1, n_cells) for v in variances]
