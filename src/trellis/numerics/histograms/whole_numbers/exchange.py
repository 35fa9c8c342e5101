"""Pairs of units change places between two children, where constraints stay as they are."""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.whole_numbers.weighted_queries import move_cost, shared_weight

MOST_EXCHANGES = 5
"""Exchanges between two children in one sweep."""


@njit(nogil=True, cache=True)
def exchange(bounds, queries, e, x, blocked, y):
    """Swap units between two children, in two cells at once, where constraints stay as they are.

    Under constraints on sums a single move breaks one, but a unit of cell j from a to b and one of
    cell k from b to a may keep them. For every pair of children the cheapest move there is joined
    with the cheapest back among the cells that lie in the same constraints. One sweep.
    """
    n, width = y.shape
    rows = queries.rows
    n_layers = bounds.row_of.shape[0]
    alike = np.zeros(n, np.int64)  # the first cell that lies in the same constraints
    for j in range(n):
        alike[j] = j
        for k in range(j):
            same = alike[k] == k
            for layer in range(n_layers):
                same = same and bounds.row_of[layer, j] == bounds.row_of[layer, k]
            if same:
                alike[j] = k
                break
    there = np.empty(n)
    back = np.empty(n)
    best_there = np.empty(n, np.int64)
    best_back = np.empty(n, np.int64)
    for a in range(width):
        for b in range(a):
            for _ in range(MOST_EXCHANGES):
                there[:] = np.inf
                back[:] = np.inf
                for j in range(n):
                    kind = alike[j]
                    if y[j, a] > 0 and y[j, a] > x[j, a] and y[j, b] < x[j, b]:
                        cost = move_cost(queries, e, j, a, b)
                        if cost < there[kind] and not (blocked.size and blocked[j, b]):
                            there[kind], best_there[kind] = cost, j
                    if y[j, b] > 0 and y[j, b] > x[j, b] and y[j, a] < x[j, a]:
                        cost = move_cost(queries, e, j, b, a)
                        if cost < back[kind] and not (blocked.size and blocked[j, a]):
                            back[kind], best_back[kind] = cost, j
                moved = False
                for kind in range(n):
                    if there[kind] < np.inf and back[kind] < np.inf:
                        j, k = best_there[kind], best_back[kind]
                        shared = shared_weight(queries, j, k)
                        if there[kind] + back[kind] < 2 * shared - 1e-9:
                            for g in range(rows.shape[0]):
                                e[rows[g, j], a] -= 1
                                e[rows[g, j], b] += 1
                                e[rows[g, k], b] -= 1
                                e[rows[g, k], a] += 1
                            y[j, a] -= 1
                            y[j, b] += 1
                            y[k, b] -= 1
                            y[k, a] += 1
                            moved = True
                            break
                if not moved:
                    break
