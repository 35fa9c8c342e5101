"""Whole numbers that break constraints are moved, a unit at a time, until they keep them.

A move takes one unit of a cell from a child and gives it to another, so that the cell's sum stays.
For a constraint that is broken, the move is made that leaves the least total violation, and among
those the one that changes the answers least. A move may shift a violation from one child to the
next; cells that were just moved rest for a while, so that this does not go round in circles.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.whole_numbers.weighted_queries import move_cost
from trellis.numerics.histograms.whole_numbers.whole_bounds import answers

REST = 7
"""Moves for which a cell of a child that was moved is left alone."""

SPARE_MOVES = 2000
"""Moves beyond one for each missing unit before a repair is given up."""


@njit(nogil=True, cache=True)
def _missed(bounds, r, value):
    return max(0, value - bounds.upper[r]) + max(0, bounds.lower[r] - value)


@njit(nogil=True, cache=True)
def _change(bounds, value, j, giver, taker):
    """What a move adds to the total violation."""
    change = 0
    for layer in range(bounds.row_of.shape[0]):
        row = bounds.row_of[layer, j]
        r, s = bounds.constraint[row, giver], bounds.constraint[row, taker]
        if r == s:
            continue
        if r >= 0:
            change += _missed(bounds, r, value[r] - 1) - _missed(bounds, r, value[r])
        if s >= 0:
            change += _missed(bounds, s, value[s] + 1) - _missed(bounds, s, value[s])
    return change


@njit(nogil=True, cache=True)
def _touches(bounds, r, j, c):
    for layer in range(bounds.row_of.shape[0]):
        if bounds.constraint[bounds.row_of[layer, j], c] == r:
            return True
    return False


@njit(nogil=True, cache=True)
def repair(bounds, queries, e, blocked, y):
    """Move units of y until all constraints hold; False if that failed.

    `queries` and the residuals `e` are those of `rounding`, and are kept up to date.
    """
    n, width = y.shape
    value = answers(bounds, y)
    rested = np.full(y.shape, -REST, np.int64)
    next_one = 0
    wrong = 0
    for r in range(value.size):
        wrong += _missed(bounds, r, value[r])
    for step in range(wrong + SPARE_MOVES):
        broken = -1
        for i in range(bounds.lower.size):
            r = (next_one + i) % bounds.lower.size
            if _missed(bounds, r, value[r]) > 0:
                broken = r
                break
        if broken < 0:
            return True
        next_one = broken + 1
        lacks = value[broken] < bounds.lower[broken]
        best, best_cost, cell, giver, taker = 1 << 40, np.inf, -1, -1, -1
        for j in range(n):
            for inside in range(width):
                if not _touches(bounds, broken, j, inside):
                    continue
                for other in range(width):
                    if _touches(bounds, broken, j, other):
                        continue
                    a, b = (other, inside) if lacks else (inside, other)
                    if y[j, a] == 0 or (blocked.size and blocked[j, b]):
                        continue
                    change = _change(bounds, value, j, a, b)
                    if step - max(rested[j, a], rested[j, b]) < REST:
                        change += 1
                    if change > best:
                        continue
                    cost = move_cost(queries, e, j, a, b)
                    if change < best or cost < best_cost:
                        best, best_cost, cell, giver, taker = change, cost, j, a, b
        if cell < 0:
            return False
        _make(bounds, value, queries.rows, e, y, cell, giver, taker)
        rested[cell, giver] = rested[cell, taker] = step
    return False


@njit(nogil=True, cache=True)
def _make(bounds, value, rows, e, y, j, giver, taker):
    for layer in range(bounds.row_of.shape[0]):
        row = bounds.row_of[layer, j]
        r, s = bounds.constraint[row, giver], bounds.constraint[row, taker]
        if r >= 0:
            value[r] -= 1
        if s >= 0:
            value[s] += 1
    y[j, giver] -= 1
    y[j, taker] += 1
    for g in range(rows.shape[0]):
        e[rows[g, j], giver] -= 1
        e[rows[g, j], taker] += 1
