"""Steps between two children that bring their table nearer to the real one, while they can."""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.rules.family import MOST_LOGGED, NOTHING, ONE, step_cost, take_step
from trellis.numerics.histograms.rules.steps import allowed, movable
from trellis.numerics.histograms.whole_numbers.weighted_queries import TIE

MOST_WORK = 1_000_000
MOST_SWEEPS = 30


@njit(nogil=True, cache=True)
def take_units(family, c, s, gives, gets, units, strict):
    """Take a step of as many units, if there are enough and they may go, or else of one."""
    if gives != NOTHING:
        units = min(units, family.y[gives, c])
    if gets != NOTHING:
        units = min(units, family.y[gets, s])
    if not allowed(family, c, s, gives, gets, units, strict):
        units = ONE
    take_step(family, c, s, gives, gets, units)


@njit(nogil=True, cache=True)
def settle(family, fresh, strict):
    """Take steps between two children, one of them fresh, while they lower the cost.

    Afterwards those are fresh that took a step, until there are none, or the work is done: with
    hundreds of children there are too many pairs.
    """
    there, back = np.empty((2, family.y.shape[0] + 1), np.int64)
    for _ in range(MOST_SWEEPS):
        before = family.logged[0]
        for c in range(fresh.size):
            for s in range(c):
                if (fresh[c] or fresh[s]) and family.work[0] <= MOST_WORK:
                    while _improve(family, c, s, there, back, strict):
                        pass
        if family.logged[0] == before:
            return
        mark_fresh(family, before, fresh)


@njit(nogil=True, cache=True)
def mark_fresh(family, since, fresh):
    """The children that took a step since the log had this length."""
    fresh[:] = False
    for i in range(since, family.logged[0]):
        fresh[family.log[i, 0]] = fresh[family.log[i, 1]] = True


@njit(nogil=True, cache=True)
def _improve(family, c, s, there, back, strict):
    """Take the best step between two children, if one lowers the cost."""
    n_there, n_back = movable(family, c, s, there), movable(family, s, c, back)
    there[n_there] = back[n_back] = NOTHING
    family.work[0] += (n_there + 1) * (n_back + 1)
    best, gives, gets = -TIE, NOTHING, NOTHING
    for a in range(n_there + 1):
        for b in range(n_back + 1):
            if there[a] == back[b]:
                continue
            cost = step_cost(family, c, s, there[a], back[b], ONE)
            if cost < best and allowed(family, c, s, there[a], back[b], ONE, strict):
                best, gives, gets = cost, there[a], back[b]
    if best == -TIE or family.logged[0] >= MOST_LOGGED:
        return False
    # The cost is quadratic in the units, so that two tell how many lower it most.
    curvature = step_cost(family, c, s, gives, gets, ONE + ONE) - 2 * best
    units = np.int64(np.floor(1 - best / curvature))
    take_units(family, c, s, gives, gets, max(ONE, units), strict)
    return True
