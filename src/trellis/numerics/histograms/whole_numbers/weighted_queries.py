"""How far the answers of whole counts are from those of real ones, query by query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints

TIE = 1e-9
"""Remainders that differ by less count as equal; hashes decide between them."""


class WeightedQueries(NamedTuple):
    """Queries stacked: cell j lies in row `rows[g, j]` of query g.

    Query g owns the rows `row_start[g]:row_start[g + 1]`.
    """

    rows: Ints
    row_start: Ints
    weight: Floats


@njit(nogil=True, cache=True)
def residuals(queries, x, y):
    """Answers of y - x to all queries, stacked."""
    rows = queries.rows
    out = np.zeros((queries.row_start[-1], x.shape[1]))
    for g in range(rows.shape[0]):
        for j in range(x.shape[0]):
            for c in range(x.shape[1]):
                out[rows[g, j], c] += y[j, c] - x[j, c]
    return out


@njit(nogil=True, cache=True)
def move_cost(queries, e, j, giver, taker):
    """Half of what moving one unit adds to the weighted squared residuals."""
    cost = 0.0
    for g in range(queries.rows.shape[0]):
        row = queries.rows[g, j]
        cost += queries.weight[g] * (1 - e[row, giver] + e[row, taker])
    return cost


@njit(nogil=True, cache=True)
def shared_weight(queries, j, k):
    """The weight of the queries in which two cells lie in the same row."""
    shared = 0.0
    for g in range(queries.rows.shape[0]):
        if queries.rows[g, j] == queries.rows[g, k]:
            shared += queries.weight[g]
    return shared
