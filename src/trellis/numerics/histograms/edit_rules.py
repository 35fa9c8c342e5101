"""Siblings exchange units until none of them breaks an edit rule, or nothing more can be done.

A child breaks the rule `a requires b` if it counts someone in the cells of a and nobody in those
of b. In one step it gives a unit of one cell to a sibling, gets a unit of another cell from it, or
both; every cell's sum stays. A step is allowed if it keeps all bounds, puts nobody into a blocked
cell and breaks no rule that was kept. A broken rule is mended in the cheaper of two ways:

    bring:  one step that gets a unit of b,
    empty:  steps that each give a unit of a and get none, until the child has none left,

where the cost is what the steps add to the weighted squared residuals of `rounding`.

Where no such steps exist, all units of a, and if that will not do all units of the child, go to a
sibling that counts someone in b, and on with all of that one while it breaks a rule. This empties
one child after the other, so it ends, at the worst with one child that holds what the parent holds.
So without bounds and blocked cells, the children of a parent that keeps all rules keep them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.numerics.histograms.repair import WholeBounds, answers
from trellis.numerics.histograms.rounding import WeightedQueries

NOTHING = -1
"""In the place of a cell: no unit goes this way. In the place of a child: there is none."""

MOST_EMPTIED = 64
"""Units of a that are moved away one by one; more are moved together."""


class EditRules(NamedTuple):
    """The cells on both sides of each rule: rules x cells."""

    given: NDArray[np.bool_]
    needed: NDArray[np.bool_]


class _Family(NamedTuple):
    bounds: WholeBounds
    queries: WeightedQueries
    rules: EditRules
    blocked: NDArray[np.bool_]
    outside: int
    y: NDArray[np.int64]
    e: NDArray[np.float64]
    value: NDArray[np.int64]
    """By constraint, the answer of y."""
    given: NDArray[np.int64]
    needed: NDArray[np.int64]
    """Rules x children: units on both sides."""


@njit(nogil=True, cache=True)
def enforce(bounds, queries, rules, blocked, outside, e, y):
    """Mend y (cells x children), which keeps all bounds; returns how many rules stay broken.

    The child `outside` stands for the rest of the world: its residuals cost nothing. `NOTHING` if
    there is none. Residuals `e` are kept up to date.
    """
    shape = rules.given.shape[0], y.shape[1]
    given, needed = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for r in range(shape[0]):
        for j in range(y.shape[0]):
            for c in range(shape[1]):
                given[r, c] += y[j, c] * rules.given[r, j]
                needed[r, c] += y[j, c] * rules.needed[r, j]
    value = answers(bounds, y)
    family = _Family(bounds, queries, rules, blocked, outside, y, e, value, given, needed)
    steps = np.empty((MOST_EMPTIED, 3), np.int64)
    while True:
        mended = 0
        for c in range(shape[1]):
            for r in range(shape[0]):
                if _breaks(family, r, c) and _mend(family, r, c, steps):
                    mended += 1
        if mended == 0 and outside == NOTHING:
            mended = _gather_one(family)
        if mended == 0:
            return _n_broken(family)


@njit(nogil=True, cache=True)
def _breaks(family, r, c):
    return family.given[r, c] > 0 and family.needed[r, c] == 0


@njit(nogil=True, cache=True)
def _n_broken(family):
    broken = 0
    for r in range(family.given.shape[0]):
        for c in range(family.given.shape[1]):
            broken += _breaks(family, r, c)
    return broken


# -- steps ----------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _cost(family, c, s, gives, gets):
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
            cost += w * (0.5 - e[less, c])
            if s != family.outside:
                cost += w * (0.5 + e[less, s])
        if more >= 0:
            cost += w * (0.5 + e[more, c])
            if s != family.outside:
                cost += w * (0.5 - e[more, s])
    return cost


@njit(nogil=True, cache=True)
def _keeps_bounds(family, c, s, gives, gets):
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
                value += (constraint == wins) + (constraint == other_wins)
                value -= (constraint == loses) + (constraint == other_loses)
                if value < bounds.lower[constraint] or value > bounds.upper[constraint]:
                    return False
    return True


@njit(nogil=True, cache=True)
def _keeps_rules(family, c, gives, gets):
    """Whether a child breaks no rule that it kept."""
    rules = family.rules
    for r in range(rules.given.shape[0]):
        if _breaks(family, r, c):
            continue
        given, needed = family.given[r, c], family.needed[r, c]
        if gives >= 0:
            given -= rules.given[r, gives]
            needed -= rules.needed[r, gives]
        if gets >= 0:
            given += rules.given[r, gets]
            needed += rules.needed[r, gets]
        if given > 0 and needed == 0:
            return False
    return True


@njit(nogil=True, cache=True)
def _allowed(family, c, s, gives, gets):
    return (
        _keeps_rules(family, c, gives, gets)
        and _keeps_rules(family, s, gets, gives)
        and _keeps_bounds(family, c, s, gives, gets)
    )


@njit(nogil=True, cache=True)
def _movable(family, giver, taker, out):
    """The cells of which one child may give a unit to another; returns how many."""
    found = 0
    for j in range(family.y.shape[0]):
        if family.y[j, giver] > 0 and not (family.blocked.size and family.blocked[j, taker]):
            out[found] = j
            found += 1
    return found


@njit(nogil=True, cache=True)
def _best_step(family, r, c, brings):
    """The cheapest allowed step of child c that brings, or that empties: cost, sibling, cells.

    The search begins behind the child itself, so that ties do not always fall on the same sibling.
    """
    n, width = family.y.shape
    rules = family.rules
    there, back = np.empty(n, np.int64), np.empty(n, np.int64)
    alone = np.empty(n)
    shared = 2 * family.queries.weight.sum()
    best, sibling, best_gives, best_gets = np.inf, NOTHING, NOTHING, NOTHING
    for i in range(1, width):
        s = (c + i) % width
        n_there, n_back = _movable(family, c, s, there), _movable(family, s, c, back)
        for a in range(n_there):
            alone[a] = _cost(family, c, s, there[a], NOTHING)
        for b in range(-1, n_back):
            gets = back[b] if b >= 0 else NOTHING
            if (brings and (b < 0 or not rules.needed[r, gets])) or (
                not brings and b >= 0 and rules.given[r, gets]
            ):
                continue
            single = _cost(family, c, s, NOTHING, gets)
            if brings and single < best and _allowed(family, c, s, NOTHING, gets):
                best, sibling, best_gives, best_gets = single, s, NOTHING, gets
            for a in range(n_there):
                gives = there[a]
                if gives == gets or (not brings and not rules.given[r, gives]):
                    continue
                if single + alone[a] - shared >= best:
                    continue  # what both cells share cannot make it cheap enough
                cost = _cost(family, c, s, gives, gets)
                if cost < best and _allowed(family, c, s, gives, gets):
                    best, sibling, best_gives, best_gets = cost, s, gives, gets
    return best, sibling, best_gives, best_gets


@njit(nogil=True, cache=True)
def _take_step(family, c, s, gives, gets):
    if gives >= 0:
        _move(family, gives, c, s, 1)
    if gets >= 0:
        _move(family, gets, s, c, 1)


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


# -- mending --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _mend(family, r, c, steps):
    """Mend one broken rule of one child; False, and nothing changed, if no steps do it."""
    price, sibling, gives, gets = _best_step(family, r, c, True)
    spent, taken = 0.0, 0
    if family.given[r, c] <= MOST_EMPTIED:
        while _breaks(family, r, c) and spent < price:
            cost, s, j, k = _best_step(family, r, c, False)
            if s == NOTHING:
                break
            _take_step(family, c, s, j, k)
            steps[taken] = s, j, k
            spent += cost
            taken += 1
    if not _breaks(family, r, c) and spent < price:
        return True
    for i in range(taken - 1, -1, -1):
        _take_step(family, c, steps[i, 0], steps[i, 2], steps[i, 1])
    if sibling == NOTHING:
        return False
    _take_step(family, c, sibling, gives, gets)
    return True


@njit(nogil=True, cache=True)
def _gather_one(family):
    """Mend the first broken rule that moves of many units at once can mend; 0 if there is none."""
    for c in range(family.y.shape[1]):
        for r in range(family.given.shape[0]):
            if not _breaks(family, r, c):
                continue
            if _gather(family, r, c, False) or _gather(family, r, c, True):
                return 1
    return 0


@njit(nogil=True, cache=True)
def _gather(family, r, c, everything):
    """Move all units of the rule's cells, or everything, to where what they require is.

    False, and nothing changed, if that breaks a bound or another rule.
    """
    y, e, value = family.y.copy(), family.e.copy(), family.value.copy()
    given, needed = family.given.copy(), family.needed.copy()
    giver, rule = c, r
    while rule != NOTHING:
        taker = np.argmax(family.needed[rule])
        if family.needed[rule, taker] == 0 or not _pour(family, rule, giver, taker, everything):
            break
        giver, rule = taker, _first_broken(family, taker) if everything else NOTHING
    if not _breaks(family, r, c) and _breaks_no_other(family, given, needed) and _within(family):
        return True
    family.y[:], family.e[:], family.value[:] = y, e, value
    family.given[:], family.needed[:] = given, needed
    return False


@njit(nogil=True, cache=True)
def _breaks_no_other(family, given, needed):
    """Whether nothing is broken that was not, with these units on both sides."""
    for r in range(given.shape[0]):
        for c in range(given.shape[1]):
            if _breaks(family, r, c) and not (given[r, c] > 0 and needed[r, c] == 0):
                return False
    return True


@njit(nogil=True, cache=True)
def _pour(family, r, giver, taker, everything):
    """Move all units of a rule's cells, or of all cells; False if the taker must not have one."""
    for j in range(family.y.shape[0]):
        units = family.y[j, giver]
        if units > 0 and (everything or family.rules.given[r, j]):
            if family.blocked.size and family.blocked[j, taker]:
                return False
            _move(family, j, giver, taker, units)
    return True


@njit(nogil=True, cache=True)
def _first_broken(family, c):
    for r in range(family.given.shape[0]):
        if _breaks(family, r, c):
            return r
    return NOTHING


@njit(nogil=True, cache=True)
def _within(family):
    for i in range(family.value.size):
        if not family.bounds.lower[i] <= family.value[i] <= family.bounds.upper[i]:
            return False
    return True
