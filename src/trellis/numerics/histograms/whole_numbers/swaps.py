r"""Units are swapped between children until answers of whole counts are near those of real ones.

A cell takes a unit from a child and gives it to another as long as

    sum over queries of w |Q (y - x)|^2

falls, x real and y whole. A child keeps the floor of its count, or one more.

A unit of cell j moved from child a to child b changes the sum by 2 (W - s_a + s_b), where W is the
sum of the weights and s_c the weighted sum over queries of the residuals of child c in j's cells.
So the best swap of a cell takes from the child with the greatest s that was rounded up, and gives
to the one with the least s that was not.

Where a query still shifts by more than `ALLOWED_SHIFT` in the mean, it gets more weight and units
are swapped again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.whole_numbers.weighted_queries import (
    TIE,
    WeightedQueries,
    move_cost,
    residuals,
)

MOST_SWEEPS = 30

FIRST_EAGERNESS = 4.0
"""At first only moves that gain this much more than they must: they decide about the rest."""

MOST_PAIRED = 2500
"""Variables up to which pairs of moves are tried, in time that grows with their square."""

ALLOWED_SHIFT = 0.5
"""Mean of |Q (y - x)| over children and cells of a query above which it gets more weight."""
MORE_WEIGHT = 2.0
MOST_WEIGHINGS = 12
FIXED, GIVES, TAKES = 0, 1, 2
FAR = 1e300


@njit(nogil=True, cache=True)
def _states(x, floors, blocked, y):
    """Which children of each cell could give a unit, and which could take one."""
    state = np.full(x.shape, FIXED, np.int8)
    for j in range(x.shape[0]):
        for c in range(x.shape[1]):
            if y[j, c] > floors[j, c]:
                state[j, c] = GIVES
            elif x[j, c] > floors[j, c] + TIE and not (blocked.size and blocked[j, c]):
                state[j, c] = TAKES
    return state


@njit(nogil=True, cache=True, fastmath=REORDER)
def _scores(queries, e, j, score):
    """By child, the weighted sum over queries of the residuals in the rows of cell j."""
    score[:] = 0.0
    for g in range(queries.rows.shape[0]):
        row, w = queries.rows[g, j], queries.weight[g]
        for c in range(score.size):
            score[c] += w * e[row, c]


@njit(nogil=True, cache=True, fastmath=REORDER | {"nnan", "ninf"})
def _best_gain(score, state, j):
    """The greatest score among givers less the least among takers."""
    greatest, least = -FAR, FAR
    for c in range(score.size):
        greatest = max(greatest, score[c] if state[j, c] == GIVES else -FAR)
        least = min(least, score[c] if state[j, c] == TAKES else FAR)
    return greatest, least


@njit(nogil=True, cache=True)
def _find(score, state, j, wanted, value):
    for c in range(score.size):
        if state[j, c] == wanted and score[c] == value:
            return c
    return -1


@njit(nogil=True, cache=True)
def _move(rows, e, y, state, j, giver, taker):
    y[j, giver] -= 1
    y[j, taker] += 1
    state[j, giver], state[j, taker] = TAKES, GIVES
    for g in range(rows.shape[0]):
        e[rows[g, j], giver] -= 1
        e[rows[g, j], taker] += 1


@njit(nogil=True, cache=True)
def swap_units(queries, x, floors, blocked, y):
    """Improve y by moves of units until none helps, then weigh again the queries that shift much.

    Of several weighings the one with the least largest shift is kept.
    """
    e = residuals(queries, x, y)
    state = _states(x, floors, blocked, y)
    _sweep(queries, e, state, y, FIRST_EAGERNESS)
    shift = _shifts(queries, e)
    if shift.max() <= ALLOWED_SHIFT:
        return
    least, best = shift.max(), y.copy()
    weighed = WeightedQueries(queries.rows, queries.row_start, queries.weight.copy())
    for _ in range(MOST_WEIGHINGS):
        for g in range(shift.size):
            if shift[g] > ALLOWED_SHIFT:
                weighed.weight[g] *= MORE_WEIGHT
        _sweep(weighed, e, state, y, 1.0)
        shift = _shifts(weighed, e)
        if shift.max() < least:
            least, best = shift.max(), y.copy()
        if least <= ALLOWED_SHIFT:
            break
    y[:] = best


@njit(nogil=True, cache=True)
def _shifts(queries, e):
    """By query, the mean size of the residuals over its cells and the children."""
    out = np.zeros(queries.weight.size)
    for g in range(out.size):
        first, last = queries.row_start[g], queries.row_start[g + 1]
        for row in range(first, last):
            for c in range(e.shape[1]):
                out[g] += abs(e[row, c])
        out[g] /= (last - first) * e.shape[1]
    return out


@njit(nogil=True, cache=True)
def _sweep(queries, e, state, y, eagerness):
    """Moves of single units, then of pairs if there are few, until none helps."""
    _sweep_singles(queries, e, state, y, eagerness)
    if y.size > MOST_PAIRED:
        return
    shared = _shared_weights(queries)
    for _ in range(MOST_SWEEPS):
        if _sweep_pairs(queries, shared, e, state, y) == 0:
            break
        _sweep_singles(queries, e, state, y, 1.0)


@njit(nogil=True, cache=True)
def _sweep_singles(queries, e, state, y, eagerness):
    """Move units while the squared residuals fall, those that gain much first."""
    n, width = y.shape
    weight = queries.weight.sum()
    score = np.empty(width)
    for _ in range(MOST_SWEEPS):
        moved = 0
        for j in range(n):
            _scores(queries, e, j, score)
            while True:
                greatest, least = _best_gain(score, state, j)
                if greatest == -FAR or least == FAR:
                    break
                if greatest - least <= weight * eagerness + TIE:
                    break
                giver = _find(score, state, j, GIVES, greatest)
                taker = _find(score, state, j, TAKES, least)
                _move(queries.rows, e, y, state, j, giver, taker)
                score[giver] -= weight
                score[taker] += weight
                moved += 1
        if eagerness > 1:
            eagerness = max(1.0, eagerness / 1.5)
        elif moved == 0:
            return


@njit(nogil=True, cache=True)
def _sweep_pairs(queries, shared, e, state, y):
    """Move a unit of one cell from a to b together with one of another cell from b to a.

    In the rows that both cells share nothing changes, so that pairs improve what singles cannot.
    Returns the number of moves.
    """
    n, width = y.shape
    there, back = np.empty(n), np.empty(n)
    moved = 0
    for a in range(width):
        for b in range(a):
            _costs(queries, e, state, a, b, there)
            _costs(queries, e, state, b, a, back)
            for j in range(n):
                k = _partner(shared[j], there[j], back)
                if k >= 0:
                    _move(queries.rows, e, y, state, j, a, b)
                    _move(queries.rows, e, y, state, k, b, a)
                    _costs(queries, e, state, a, b, there)
                    _costs(queries, e, state, b, a, back)
                    moved += 1
    return moved


@njit(nogil=True, cache=True)
def _costs(queries, e, state, giver, taker, cost):
    """By cell, what it costs to move a unit; infinite where none may move."""
    for j in range(cost.size):
        may = state[j, giver] == GIVES and state[j, taker] == TAKES
        cost[j] = move_cost(queries, e, j, giver, taker) if may else np.inf


@njit(nogil=True, cache=True)
def _partner(shared, there, back):
    """A cell whose move back makes up for the cost of a move there; -1 if there is none."""
    if there < np.inf:
        for k in range(back.size):
            if there + back[k] < 2 * shared[k] - TIE:
                return k
    return -1


@njit(nogil=True, cache=True)
def _shared_weights(queries):
    n = queries.rows.shape[1]
    out = np.zeros((n, n))
    for g in range(queries.rows.shape[0]):
        for j in range(n):
            for k in range(n):
                if queries.rows[g, j] == queries.rows[g, k]:
                    out[j, k] += queries.weight[g]
    return out
