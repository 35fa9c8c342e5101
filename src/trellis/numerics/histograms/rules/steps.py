"""Children of a family exchange whole units, and keep count of the edit rules that they break.

A child breaks the rule `a requires b` if it counts someone in the cells of a and nobody in those
of b. In one step it gives units of one cell to a sibling, gets as many of another cell from it, or
both; every cell's sum stays. A step keeps all bounds and puts nobody into a blocked cell. A strict
step also breaks no rule that was kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.whole_numbers.repair import WholeBounds, answers
from trellis.numerics.histograms.whole_numbers.rounding import WeightedQueries

NOTHING = np.int64(-1)
"""In the place of a cell: no unit goes this way. In the place of a child: there is none."""
ONE = np.int64(1)
START = np.int64(0)
"""The length of an empty log."""
BRING, EMPTY = np.int64(0), np.int64(1)
"""Ways to keep a rule: someone comes into the needed cells, or all leave the given ones."""
STRICT, RELAXED = np.bool_(True), np.bool_(False)
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
    """Rules x children: nobody may come into the given cells."""
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
def _keeps_bounds(family, c, s, gives, gets, units):
    bounds = family.bounds
    for layer in range(bounds.row_of.shape[0]):
        loses, wins = np.int64(NOTHING), np.int64(NOTHING)
        other_wins, other_loses = np.int64(NOTHING), np.int64(NOTHING)
        if gives >= 0:
            row = bounds.row_of[layer, gives]
            loses, other_wins = bounds.constraint[row, c], bounds.constraint[row, s]
        if gets >= 0:
            row = bounds.row_of[layer, gets]
            wins, other_loses = bounds.constraint[row, c], bounds.constraint[row, s]
        for constraint in (loses, wins, other_loses, other_wins):
            if constraint >= 0:
                value = family.value[constraint]
                value += units * ((constraint == wins) + (constraint == other_wins))
                value -= units * ((constraint == loses) + (constraint == other_loses))
                if value < bounds.lower[constraint] or value > bounds.upper[constraint]:
                    return False
    return True


@njit(nogil=True, cache=True)
def _keeps_rules(family, c, gives, gets, units, strict):
    """Whether a child keeps what is closed and held and, if strict, every rule that it kept."""
    rules = family.rules
    for r in range(rules.given.shape[0]):
        given, needed = family.given[r, c], family.needed[r, c]
        if gives >= 0:
            given -= units * rules.given[r, gives]
            needed -= units * rules.needed[r, gives]
        if gets >= 0:
            given += units * rules.given[r, gets]
            needed += units * rules.needed[r, gets]
        if family.closed[r, c] and given > family.given[r, c]:
            return False
        if family.held[r, c] and needed == 0 and family.needed[r, c] > 0:
            return False
        if strict and given > 0 and needed == 0 and not breaks(family, r, c):
            return False
    return True


@njit(nogil=True, cache=True)
def allowed(family, c, s, gives, gets, units, strict):
    return (
        _keeps_rules(family, c, gives, gets, units, strict)
        and _keeps_rules(family, s, gets, gives, units, strict)
        and _keeps_bounds(family, c, s, gives, gets, units)
    )


@njit(nogil=True, cache=True)
def movable(family, giver, taker, out):
    """The cells of which one child may give a unit to another; returns how many."""
    found = 0
    for j in range(family.y.shape[0]):
        if family.y[j, giver] > 0 and not (family.blocked.size and family.blocked[j, taker]):
            out[found] = j
            found += 1
    return found


class Step(NamedTuple):
    """What child c gives to a sibling, and gets from it."""

    cost: float | np.float64
    sibling: int | np.int64
    gives: int | np.int64
    gets: int | np.int64


@njit(nogil=True, cache=True)
def best_step(family, r, c, way, strict):
    """The cheapest step of child c that brings a needed unit, or one that gives a given unit.

    Also the cost of the cheapest step that need not be strict, if that is less. The search begins
    behind the child itself, so that ties do not always fall on the same sibling.
    """
    n, width = family.y.shape
    rules = family.rules
    there, back = np.empty(n, np.int64), np.empty(n, np.int64)
    alone = np.empty(n)
    shared = 2 * family.queries.weight.sum()
    brings = way == BRING
    relaxed = np.inf
    best = Step(np.inf, NOTHING, NOTHING, NOTHING)
    for i in range(1, width):
        s = (c + i) % width
        n_there, n_back = movable(family, c, s, there), movable(family, s, c, back)
        family.work[0] += 1 + n_there
        for a in range(n_there):
            alone[a] = step_cost(family, c, s, there[a], NOTHING, ONE)
        for b in range(-1, n_back):
            gets = back[b] if b >= 0 else NOTHING
            if (brings and (b < 0 or not rules.needed[r, gets])) or (
                not brings and b >= 0 and rules.given[r, gets]
            ):
                continue
            family.work[0] += 1 + n_there
            single = step_cost(family, c, s, NOTHING, gets, ONE)
            if brings and single < best.cost and allowed(family, c, s, NOTHING, gets, ONE, RELAXED):
                relaxed = min(relaxed, single)
                if not strict or allowed(family, c, s, NOTHING, gets, ONE, STRICT):
                    best = Step(single, s, NOTHING, gets)
            for a in range(n_there):
                gives = there[a]
                if gives == gets or (not brings and not rules.given[r, gives]):
                    continue
                if single + alone[a] - shared >= best.cost:
                    continue  # what both cells share cannot make it cheap enough
                cost = step_cost(family, c, s, gives, gets, ONE)
                if cost < best.cost and allowed(family, c, s, gives, gets, ONE, RELAXED):
                    relaxed = min(relaxed, cost)
                    if not strict or allowed(family, c, s, gives, gets, ONE, STRICT):
                        best = Step(cost, s, gives, gets)
    return best, relaxed


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
