"""Families of histograms as dense quadratic and integer programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from trellis.model import Schema
from trellis.model.tables.queries import parse_query


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
    q, sums, floors, missing = _rounding_program(maps, x, parent)
    return _least(q, sums, x - floors, missing, floors, np.ones(q.shape[0]), None, seconds)


def least_largest_shift(
    maps: Sequence[NDArray], x: NDArray[np.float64], parent: NDArray, seconds: float = 60.0
) -> float:
    """The least that the largest mean of |Q (y - x)| over all queries can be, by HiGHS."""
    q, sums, floors, missing = _rounding_program(maps, x, parent)
    sizes = [(int(cells.max()) + 1) * x.shape[1] for cells in maps]
    means = sparse.block_diag([np.full((1, size), 1 / size) for size in sizes], format="csr")
    return _least(q, sums, x - floors, missing, floors, np.zeros(q.shape[0]), means, seconds)[0]


def _rounding_program(maps, x, parent):
    """All answers as a matrix, the sums of cells, floors, and what is missing from the sums."""
    n, width = x.shape
    floors = np.floor(x + 1e-9)
    q = sparse.vstack(
        [
            sparse.kron(
                sparse.csr_matrix((np.ones(n), (cells, np.arange(n)))),
                sparse.eye(width),
                format="csr",
            )
            for cells in maps
        ],
        format="csr",
    )
    sums = sparse.kron(sparse.eye(n), np.ones((1, width)), format="csr")
    return q, sums, floors, parent - floors.sum(axis=1)


def _least(q, sums, remainder, missing, floors, price, means, seconds):
    """Variables: units up, answers above and below, and the largest of `means` of both."""
    size, k = remainder.size, q.shape[0]
    target = q @ remainder.ravel()
    rules = [
        optimize.LinearConstraint(
            sparse.hstack([q, -sparse.eye(k), sparse.eye(k), sparse.csr_matrix((k, 1))]),
            target,
            target,
        ),
        optimize.LinearConstraint(
            sparse.hstack([sums, sparse.csr_matrix((missing.size, 2 * k + 1))]), missing, missing
        ),
    ]
    if means is not None:
        above = [sparse.csr_matrix((means.shape[0], size)), means, means]
        largest = -np.ones((means.shape[0], 1))
        rules.append(optimize.LinearConstraint(sparse.hstack([*above, largest]), -np.inf, 0))
    most = np.concatenate([(remainder.ravel() > 1e-9).astype(float), np.full(2 * k + 1, np.inf)])
    found = optimize.milp(
        np.concatenate([np.zeros(size), price, price, [1.0]]),
        constraints=rules,
        integrality=np.concatenate([np.ones(size), np.zeros(2 * k + 1)]),
        bounds=optimize.Bounds(0, most),
        options={"time_limit": seconds},
    )
    up = np.rint(found.x[:size]).reshape(remainder.shape)
    return found.fun, (floors + up).astype(np.int64)


def rounding_objective(maps, x, y) -> float:
    """The sum over queries of |Q (y - x)|."""
    return sum(np.abs(np.bincount(cells, column)).sum() for cells in maps for column in (y - x).T)
