"""Variances of best linear unbiased estimates of all cells, by inverting one large matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trellis.model import Hierarchy, Schema
from trellis.model.tables.queries import parse_query


def dense_query_variances(
    tree: Hierarchy,
    schema: Schema,
    noise: Mapping[tuple[str, str], float],
    exact_totals: tuple[str, ...],
    asked: tuple[str, str],
) -> NDArray[np.float64]:
    """Variances by area and cell of the query `asked`; `noise` has the variance of each query."""
    rows, weights = [], []
    for (level, query), variance in noise.items():
        matrix = _matrix(tree, schema, level, query)
        rows.append(matrix)
        weights += [1 / variance] * len(matrix)
    measured = np.concatenate(rows)
    precision = measured.T @ (np.array(weights)[:, None] * measured)
    exact = [_matrix(tree, schema, level, "total") for level in exact_totals]
    fixed = np.concatenate(exact) if exact else np.zeros((0, precision.shape[0]))
    # Exact totals restrict the cells to the null space of `fixed`.
    _, sizes, basis = np.linalg.svd(fixed, full_matrices=True)
    free = basis[(sizes > 1e-9).sum() :].T
    covariance = free @ np.linalg.inv(free.T @ precision @ free) @ free.T
    wanted = _matrix(tree, schema, *asked)
    return np.einsum("ij,jk,ik->i", wanted, covariance, wanted)


def _matrix(tree: Hierarchy, schema: Schema, level: str, query: str) -> NDArray[np.float64]:
    """Answers of all areas of a level as sums of the leaves' cells."""
    n_leaves, n_cells = tree.sizes[-1], schema.n_cells
    cells = np.eye(n_leaves * n_cells).reshape(-1, n_leaves, n_cells)
    parsed = parse_query(schema, query)
    answers = [
        parsed.answer(tree.sum_up(one)[tree.level_names.index(level)]).ravel() for one in cells
    ]
    return np.array(answers).T
