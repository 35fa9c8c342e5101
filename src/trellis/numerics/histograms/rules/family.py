"""A family of whole counts that exchanges units, and keeps count of the rules that it breaks.

A child breaks the rule `a requires b` if it counts someone in the cells of a and no one in those
of b. In one step it gives units of one cell to a sibling, gets as many of another cell from it, or
both; every cell's sum stays. Steps are logged, so that they can be undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.whole_numbers.weighted_queries import WeightedQueries
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds, answers

NOTHING = np.int64(-1)
"""In the place of a cell: no unit goes this way. In the place of a child: there is none."""
ONE = np.int64(1)

START = np.int64(0)
"""The length of an empty log."""

MOST_LOGGED = 1 << 14
"""Steps that can be undone, beyond one for each cell of each child."""
# Most are numbers of NumPy because Numba compiles a function again for each literal of Python.


class EditRules(NamedTuple):
    """The cells on both sides of each rule: rules x cells."""

    given: Marks
    needed: Marks


class Family(NamedTuple):
    """A table y (cells x children) with all that steps keep up to date."""

    bounds: WholeBounds
    queries: WeightedQueries
    rules: EditRules
    blocked: Marks
    outside: int
    """The child that stands for the rest of the world: its residuals cost nothing."""
    y: Ints
    e: Floats
    value: Ints
    """By constraint, the answer of y."""
    given: Ints
    needed: Ints
    """Rules x children: units on both sides."""
    closed: Marks
    """Rules x children: no one may come into the given cells."""
    held: Marks
    """Rules x children: someone must stay in the needed cells."""
    cost: Floats
    """One number: half the weighted squared residuals."""
    work: Ints
    """One number: steps looked at."""
    log: Ints
    """The steps taken: child, sibling, cell given, cell got, units."""
    logged: Ints
    """One number: the length of the log."""


@njit(nogil=True, cache=True)
def family_of(bounds, queries, rules, blocked, outside, e, y):
    shape = rules.given.shape[0], y.shape[1]
    given, needed = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for r in range(shape[0]):
        for j in range(y.shape[0]):
            for c in range(shape[1]):
                given[r, c] += y[j, c] * rules.given[r, j]
                needed[r, c] += y[j, c] * rules.needed[r, j]
    closed, held = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    cost = np.zeros(1)
    for g in range(queries.weight.size):
        for row in range(queries.row_start[g], queries.row_start[g + 1]):
            for c in range(shape[1]):
                if c != outside:
                    cost[0] += 0.5 * queries.weight[g] * e[row, c] ** 2
    log = np.empty((MOST_LOGGED + y.size, 5), np.int64)
    return Family(
        bounds, queries, rules, blocked, outside, y, e, answers(bounds, y), given, needed,
        closed, held, cost, np.zeros(1, np.int64), log, np.zeros(1, np.int64),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def breaks(family, r, c):
    return family.given[r, c] > 0 and family.needed[r, c] == 0


@njit(nogil=True, cache=True)
def broken_pairs(family):
    """Rules x children."""
    return (family.given > 0) & (family.needed == 0)


@njit(nogil=True, cache=True)
def n_broken(family):
    return broken_pairs(family).sum()


@njit(nogil=True, cache=True)
def keeps_all(family, broken):
    """Whether all bounds hold, and no rule is broken but these."""
    bounds = family.bounds
    for i in range(family.value.size):
        if not bounds.lower[i] <= family.value[i] <= bounds.upper[i]:
            return False
    return not (broken_pairs(family) & ~broken).any()


@njit(nogil=True, cache=True, forceinline=True)
def step_cost(family, c, s, gives, gets, units):
    """Half of what a step between child c and sibling s adds to the squared residuals."""
    rows, e = family.queries.rows, family.e
    cost = 0.0
    for g in range(rows.shape[0]):
        w = family.queries.weight[g]
        less = rows[g, gives] if gives >= 0 else NOTHING
        more = rows[g, gets] if gets >= 0 else NOTHING
        if less == more:
            continue
        if less >= 0:
            cost += w * units * (0.5 * units - e[less, c])
            if s != family.outside:
                cost += w * units * (0.5 * units + e[less, s])
        if more >= 0:
            cost += w * units * (0.5 * units + e[more, c])
            if s != family.outside:
                cost += w * units * (0.5 * units - e[more, s])
    return cost


@njit(nogil=True, cache=True)
def take_step(family, c, s, gives, gets, units):
    family.log[family.logged[0]] = c, s, gives, gets, units
    family.logged[0] += 1
    family.cost[0] += step_cost(family, c, s, gives, gets, units)
    _exchange(family, c, s, gives, gets, units)


@njit(nogil=True, cache=True)
def undo(family, logged, cost):
    """Go back to where the log had this length, and the table this cost."""
    while family.logged[0] > logged:
        family.logged[0] -= 1
        c, s, gives, gets, units = family.log[family.logged[0]]
        _exchange(family, c, s, gets, gives, units)
    family.cost[0] = cost


@njit(nogil=True, cache=True)
def _exchange(family, c, s, gives, gets, units):
    if gives >= 0:
        _move(family, gives, c, s, units)
    if gets >= 0:
        _move(family, gets, s, c, units)


@njit(nogil=True, cache=True)
def _move(family, j, giver, taker, units):
    family.y[j, giver] -= units
    family.y[j, taker] += units
    rows, rules, bounds = family.queries.rows, family.rules, family.bounds
    for g in range(rows.shape[0]):
        family.e[rows[g, j], giver] -= units
        family.e[rows[g, j], taker] += units
    for r in range(rules.given.shape[0]):
        family.given[r, giver] -= units * rules.given[r, j]
        family.given[r, taker] += units * rules.given[r, j]
        family.needed[r, giver] -= units * rules.needed[r, j]
        family.needed[r, taker] += units * rules.needed[r, j]
    for layer in range(bounds.row_of.shape[0]):
        row = bounds.row_of[layer, j]
        if bounds.constraint[row, giver] >= 0:
            family.value[bounds.constraint[row, giver]] -= units
        if bounds.constraint[row, taker] >= 0:
            family.value[bounds.constraint[row, taker]] += units


@njit(nogil=True, cache=True)
def become(family, y):
    """Make the family's table equal to another of the same sums; this cannot be undone."""
    family.logged[0] = START
    for j in range(y.shape[0]):
        giver, taker = 0, 0
        while True:
            while giver < y.shape[1] and family.y[j, giver] <= y[j, giver]:
                giver += 1
            while taker < y.shape[1] and family.y[j, taker] >= y[j, taker]:
                taker += 1
            if giver == y.shape[1] or taker == y.shape[1]:
                break
            units = min(family.y[j, giver] - y[j, giver], y[j, taker] - family.y[j, taker])
            take_step(family, giver, taker, j, NOTHING, units)
    family.logged[0] = START
