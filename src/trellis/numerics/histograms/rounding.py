r"""Whole numbers near real ones, with every cell's sum kept and every marginal nearly so.

Counts are cut down to whole numbers and each cell hands the units that are missing to the children
with the largest remainders. Then units are swapped: a cell takes one from a child and gives it to
another as long as

    sum over queries of |Q (y - x)|^2

falls, x real and y whole. A child keeps the floor of its count, or one more.

A unit of cell j moved from child a to child b changes the sum by 2 (G - s_a + s_b), where G is the
number of queries and s_c the sum over queries of the residuals of child c in j's cells. So the best
swap of a cell takes from the child with the greatest s that was rounded up, and gives to the one
with the least s that was not.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.ties import priority

MOST_SWEEPS = 30
MOST_PAIRED = 400
"""Variables up to which pairs of moves are tried, in time that grows with their square."""

FIXED, GIVES, TAKES = 0, 1, 2
FAR = 1e300
TIE = 1e-9
"""Remainders that differ by less count as equal; hashes decide between them."""


@njit(nogil=True, cache=True)
def round_cells(x, parent, key, first_index, y):
    """Floors plus largest remainders, cell by cell, for x and y of shape cells x children.

    x is taken to add up to `parent` but for rounding errors. Ties fall by the hash of key and index
    `first_index + cell * children + child`.
    """
    n, width = x.shape
    claim = np.empty(width)
    for j in range(n):
        missing = parent[j]
        for c in range(width):
            y[j, c] = np.int64(np.floor(x[j, c] + TIE))
            missing -= y[j, c]
            claim[c] = x[j, c] - y[j, c]
        if missing == 0:
            continue
        for c in range(width):
            claim[c] += TIE * (priority(key, first_index + j * width + c) / 2.0**64)
        order = np.argsort(claim)
        step = 1 if missing > 0 else -1
        i = 0
        while missing != 0:
            c = order[width - 1 - i % width] if step > 0 else order[i % width]
            i += 1
            # A child without any of the cell gets none while others can take it.
            if (step > 0 and claim[c] < 2 * TIE and i <= width) or (step < 0 and y[j, c] == 0):
                continue
            y[j, c] += step
            missing -= step


@njit(nogil=True, cache=True)
def residuals(rows, n_rows, x, y):
    """Answers of y - x to all queries, stacked; `rows[g, j]` is the row of cell j in query g."""
    out = np.zeros((n_rows, x.shape[1]))
    for g in range(rows.shape[0]):
        for j in range(x.shape[0]):
            for c in range(x.shape[1]):
                out[rows[g, j], c] += y[j, c] - x[j, c]
    return out


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
def _scores(rows, e, j, score):
    """By child, the sum over queries of the residuals in the rows of cell j."""
    score[:] = 0.0
    for g in range(rows.shape[0]):
        for c in range(score.size):
            score[c] += e[rows[g, j], c]


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
def swap_units(rows, n_rows, x, floors, blocked, y):
    """Improve y by moves of single units, then of pairs if there are few, until none helps."""
    e = residuals(rows, n_rows, x, y)
    state = _states(x, floors, blocked, y)
    _sweep_singles(rows, e, state, y)
    if x.size > MOST_PAIRED:
        return
    for _ in range(MOST_SWEEPS):
        if _sweep_pairs(rows, e, state, y) == 0:
            break
        _sweep_singles(rows, e, state, y)


@njit(nogil=True, cache=True)
def _sweep_singles(rows, e, state, y):
    """Move units while the squared residuals fall, those that gain much first."""
    n, width = y.shape
    n_queries = rows.shape[0]
    score = np.empty(width)
    eagerness = 4.0  # only moves that gain a lot at first: they decide about the rest
    for _ in range(MOST_SWEEPS):
        moved = 0
        for j in range(n):
            _scores(rows, e, j, score)
            while True:
                greatest, least = _best_gain(score, state, j)
                if greatest == -FAR or least == FAR:
                    break
                if greatest - least <= n_queries * eagerness + TIE:
                    break
                giver = _find(score, state, j, GIVES, greatest)
                taker = _find(score, state, j, TAKES, least)
                _move(rows, e, y, state, j, giver, taker)
                score[giver] -= n_queries
                score[taker] += n_queries
                moved += 1
        if eagerness > 1:
            eagerness = max(1.0, eagerness / 1.5)
        elif moved == 0:
            return


@njit(nogil=True, cache=True)
def _sweep_pairs(rows, e, state, y):
    """Move a unit of one cell from a to b together with one of another cell from b to a.

    In the rows that both cells share nothing changes, so that pairs improve what singles cannot.
    Returns the number of moves.
    """
    n, width = y.shape
    moved = 0
    for a in range(width):
        for b in range(width):
            for j in range(n):
                if state[j, a] != GIVES or state[j, b] != TAKES:
                    continue
                there = move_cost(rows, e, j, a, b)
                for k in range(n):
                    if state[k, b] != GIVES or state[k, a] != TAKES:
                        continue
                    shared = 0
                    for g in range(rows.shape[0]):
                        shared += rows[g, j] == rows[g, k]
                    if there + move_cost(rows, e, k, b, a) < 2 * shared - TIE:
                        _move(rows, e, y, state, j, a, b)
                        _move(rows, e, y, state, k, b, a)
                        moved += 1
                        break
    return moved


@njit(nogil=True, cache=True)
def move_cost(rows, e, j, giver, taker):
    """Half of what moving one unit adds to the squared residuals."""
    cost = 0.0
    for g in range(rows.shape[0]):
        cost += 1 - e[rows[g, j], giver] + e[rows[g, j], taker]
    return cost


@njit(nogil=True, cache=True)
def round_single(rows, n_rows, x, key):
    """Whole numbers near a single histogram, whose total is rounded as well.

    Units move from the cell whose answers lie highest to the one whose answers lie lowest while
    the squared residuals fall.
    """
    n = x.size
    n_queries = rows.shape[0]
    y = np.floor(x + TIE).astype(np.int64)
    claim = x - y
    missing = min(n, max(0, np.int64(np.rint(x.sum())) - y.sum()))
    for j in range(n):
        claim[j] += TIE * (priority(key, j) / 2.0**64)
    order = np.argsort(claim)
    up = np.zeros(n, np.bool_)
    for i in range(missing):
        up[order[n - 1 - i]] = True
        y[order[n - 1 - i]] += 1
    e = np.zeros(n_rows)
    for g in range(n_queries):
        for j in range(n):
            e[rows[g, j]] += y[j] - x[j]
    score = np.empty(n)
    for _ in range(4 * n):
        score[:] = 0.0
        for g in range(n_queries):
            for j in range(n):
                score[j] += e[rows[g, j]]
        giver, taker = -1, -1
        for j in range(n):
            if up[j]:
                if giver < 0 or score[j] > score[giver]:
                    giver = j
            elif x[j] > y[j] + TIE and (taker < 0 or score[j] < score[taker]):
                taker = j
        if giver < 0 or taker < 0:
            break
        cost = score[taker] - score[giver]
        for g in range(n_queries):
            cost += rows[g, giver] != rows[g, taker]
        if cost >= -TIE:
            break
        up[giver], up[taker] = False, True
        y[giver] -= 1
        y[taker] += 1
        for g in range(n_queries):
            e[rows[g, giver]] -= 1
            e[rows[g, taker]] += 1
    return y
