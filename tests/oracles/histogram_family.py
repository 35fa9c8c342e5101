"""Families of histograms as dense quadratic and integer programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from trellis.model import Schema
from trellis.model.queries import parse_query


def matrix(schema: Schema, name: str) -> NDArray[np.float64]:
    """The query as a matrix of its cells by the cells of the schema."""
    query = parse_query(schema, name)
    out = np.zeros((query.n_cells, schema.n_cells))
    out[query.cell_of, np.arange(schema.n_cells)] = 1
    return out


EXACT = 1e5
"""Weight of a row that must hold exactly: it is then missed by about its multiplier / EXACT^2."""


def weighted_rows(schema, queries, values, variances):
    """A and t with objective 1/2 |A x - t|^2, children one after the other; exact rows apart."""
    n_children, n = len(values[queries[0]]), schema.n_cells
    rows, targets, exact, sums = [], [], [], []
    for name in queries:
        q = matrix(schema, name)
        for child, k in np.ndindex(values[name].shape):
            s2 = np.broadcast_to(variances[name], values[name].shape)[child, k]
            row = np.zeros(n_children * n)
            row[child * n : (child + 1) * n] = q[k]
            if s2 == 0:
                exact.append(row)
                sums.append(values[name][child, k])
            elif s2 < np.inf:
                rows.append(row / np.sqrt(s2))
                targets.append(values[name][child, k] / np.sqrt(s2))
    return np.array(rows), np.array(targets), exact, sums


def dense_optimum(schema, parent, queries, values, variances) -> NDArray[np.float64]:
    """The optimum by the active sets of Lawson and Hanson on the written-out matrix."""
    n_children = len(values[queries[0]])
    a, t, exact, sums = weighted_rows(schema, queries, values, variances)
    exact = np.vstack([*exact, np.tile(np.eye(schema.n_cells), n_children)])
    sums = np.concatenate([sums, parent])
    return optimize.nnls(np.vstack([a, EXACT * exact]), np.concatenate([t, EXACT * sums]))[0]


def least_rounding(
    maps: Sequence[NDArray], x: NDArray[np.float64], parent: NDArray, seconds: float = 60.0
) -> tuple[float, NDArray[np.int64]]:
    """Floor or floor + 1 of x (cells x children) of least sum of |Q (y - x)|, by HiGHS."""
    n, width = x.shape
    floors = np.floor(x + 1e-9)
    remainder = x - floors
    answers = [
        sparse.kron(
            sparse.csr_matrix((np.ones(n), (cells, np.arange(n)))), sparse.eye(width), format="csr"
        )
        for cells in maps
    ]
    q = sparse.vstack(answers, format="csr")
    target = q @ remainder.ravel()
    k = target.size
    sums = sparse.hstack(
        [sparse.kron(sparse.eye(n), np.ones((1, width))), sparse.csr_matrix((n, 2 * k))]
    )
    missing = parent - floors.sum(axis=1)
    found = optimize.milp(
        np.concatenate([np.zeros(x.size), np.ones(2 * k)]),
        constraints=[
            optimize.LinearConstraint(
                sparse.hstack([q, -sparse.eye(k), sparse.eye(k)]), target, target
            ),
            optimize.LinearConstraint(sums, missing, missing),
        ],
        integrality=np.concatenate([np.ones(x.size), np.zeros(2 * k)]),
        bounds=optimize.Bounds(
            0, np.concatenate([(remainder.ravel() > 1e-9).astype(float), np.full(2 * k, np.inf)])
        ),
        options={"time_limit": seconds},
    )
    return found.fun, (floors + np.rint(found.x[: x.size]).reshape(n, width)).astype(np.int64)


def rounding_objective(maps, x, y) -> float:
    """The sum over queries of |Q (y - x)|."""
    return sum(np.abs(np.bincount(cells, column)).sum() for cells in maps for column in (y - x).T)
