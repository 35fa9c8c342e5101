"""What single steps cannot improve: two children change places, and steps that pay together."""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.rules.family import (
    NOTHING,
    ONE,
    START,
    broken_pairs,
    keeps_all,
    step_cost,
    take_step,
    undo,
)
from trellis.numerics.histograms.rules.settle import MOST_WORK, mark_fresh, settle
from trellis.numerics.histograms.rules.steps import STRICT, allowed, movable
from trellis.numerics.histograms.whole_numbers.weighted_queries import TIE

MOST_PAIRED = 5000
"""Steps up to which two at once are tried."""
MOST_LINKS = 4


@njit(nogil=True, cache=True)
def change_places(family):
    """Let two children exchange all they have, or one give all to the other, if that pays.

    Afterwards they are brought near to the real ones again, which settles what it costs.
    """
    broken, before, logged = broken_pairs(family), family.cost[0], family.logged[0]
    fresh = np.empty(family.y.shape[1], np.bool_)
    for c in range(fresh.size):
        for s in range(fresh.size):
            for both in (True, False):
                if c == s or (both and c < s) or family.work[0] > MOST_WORK:
                    continue
                if _give_all(family, c, s, both):
                    mark_fresh(family, logged, fresh)
                    settle(family, fresh, STRICT)
                    if family.cost[0] < before - TIE and keeps_all(family, broken):
                        return True
                undo(family, logged, before)
    return False


@njit(nogil=True, cache=True)
def _give_all(family, c, s, both):
    """Move all units of child c to s, and if both those of s to c; False where one must not go."""
    for j in range(family.y.shape[0]):
        there, back = family.y[j, c], family.y[j, s] if both else START
        if family.blocked.size and (
            (there > 0 and family.blocked[j, s]) or (back > 0 and family.blocked[j, c])
        ):
            return False
        if there > back:
            take_step(family, c, s, j, NOTHING, there - back)
        elif there < back:
            take_step(family, c, s, NOTHING, j, back - there)
    return True


@njit(nogil=True, cache=True)
def take_two(family):
    """Take two steps that lower the cost together where neither may or does alone; False if none.

    What two steps share takes four times the sum of weights off their cost at most, so that pairs
    of dear ones are passed over.
    """
    steps, cost = _all_steps(family)
    if len(steps) > MOST_PAIRED:
        return False
    broken, shared = broken_pairs(family), 4 * family.queries.weight.sum()
    before, logged = family.cost[0], family.logged[0]
    order = np.argsort(cost)
    for i in range(order.size):
        c, s, gives, gets = steps[order[i]]
        take_step(family, c, s, gives, gets, ONE)
        for k in range(i + 1, order.size):
            if cost[order[i]] + cost[order[k]] >= shared or family.work[0] > MOST_WORK:
                break
            family.work[0] += 1
            d, t, there, back = steps[order[k]]
            if not (d in (c, s) or t in (c, s)) or not _are_there(family, d, t, there, back):
                continue
            if family.cost[0] + step_cost(family, d, t, there, back, ONE) < before - TIE:
                cost_of_one = family.cost[0]
                take_step(family, d, t, there, back, ONE)
                if keeps_all(family, broken):
                    return True
                undo(family, logged + 1, cost_of_one)
        undo(family, logged, before)
    return False


@njit(nogil=True, cache=True)
def take_chain(family):
    """Take a step that raises the cost and up to `MOST_LINKS` after it that lower it again."""
    steps, cost = _all_steps(family)
    if len(steps) > MOST_PAIRED:
        return False
    broken, before, logged = broken_pairs(family), family.cost[0], family.logged[0]
    for i in np.argsort(cost):
        c, s, gives, gets = steps[i]
        take_step(family, c, s, gives, gets, ONE)
        for _ in range(MOST_LINKS):
            if family.work[0] > MOST_WORK or not _take_link(family, steps, logged):
                break
            if family.cost[0] < before - TIE and keeps_all(family, broken):
                return True
        undo(family, logged, before)
    return False


@njit(nogil=True, cache=True)
def _take_link(family, steps, since):
    """The cheapest strict step of children that took one since, but none that takes it back."""
    taken = np.zeros(family.y.shape[1], np.bool_)
    mark_fresh(family, since, taken)
    last = family.log[family.logged[0] - 1]
    best, link = np.inf, NOTHING
    family.work[0] += len(steps)
    for i in range(len(steps)):
        c, s, gives, gets = steps[i]
        if not (taken[c] or taken[s]) or not _are_there(family, c, s, gives, gets):
            continue
        if c == last[0] and s == last[1] and (gives == last[3] or gets == last[2]):
            continue
        cost = step_cost(family, c, s, gives, gets, ONE)
        if cost < best and allowed(family, c, s, gives, gets, ONE, STRICT):
            best, link = cost, i
    if link != NOTHING:
        c, s, gives, gets = steps[link]
        take_step(family, c, s, gives, gets, ONE)
    return link != NOTHING


@njit(nogil=True, cache=True)
def _all_steps(family):
    """All steps of one unit, whether rules and bounds allow them or not, and their costs."""
    n, width = family.y.shape
    there, back = np.empty((2, n + 1), np.int64)
    steps, cost = np.empty((MOST_PAIRED + 1, 4), np.int64), np.empty(MOST_PAIRED + 1)
    found = 0
    for c in range(width):
        for s in range(c):
            n_there, n_back = movable(family, c, s, there), movable(family, s, c, back)
            there[n_there] = back[n_back] = NOTHING
            for a in range(n_there + 1):
                for b in range(n_back + 1):
                    if there[a] != back[b] and found <= MOST_PAIRED:
                        steps[found] = c, s, there[a], back[b]
                        cost[found] = step_cost(family, c, s, there[a], back[b], ONE)
                        found += 1
    return steps[:found], cost[:found]


@njit(nogil=True, cache=True)
def _are_there(family, c, s, gives, gets):
    return (gives == NOTHING or family.y[gives, c] > 0) and (
        gets == NOTHING or family.y[gets, s] > 0
    )
