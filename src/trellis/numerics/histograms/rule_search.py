"""A table of less cost that keeps the edit rules of a family, by branch and bound.

Every rule that a child breaks is kept in one of two ways: nobody in the given cells, or someone in
the needed ones. The search goes both ways, the cheaper first, and brings the rest of the table as
near to the real one as single steps between two children can. Rules that are not decided yet may
break on the way, so a unit may come from a sibling that cannot spare it; that one is decided next.
A way that costs as much as the best table so far ends there. Rules that stay broken, because sums
or bounds leave no room, weigh more than any cost.

The cost on the way is a lower bound but for what pairs of children cannot improve. The search ends
after `MOST_WORK` steps looked at, so that it does not depend on the machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.rounding import TIE
from trellis.numerics.histograms.rule_steps import (
    NOTHING,
    allowed,
    become,
    best_step,
    breaks,
    movable,
    n_broken,
    step_cost,
    take_step,
)

MOST_WORK = 3_000_000
MOST_LOGGED = 1 << 15
"""Steps on one way down the tree; one that would take more is not followed."""
MOST_SWEEPS = 30
CHUNKS = 16
"""Many units leave a child in about so many parts."""
GAP = 0.995
"""Ways that cost at least this part of the best table are not followed."""

BRING, EMPTY, GIVE_UP = 0, 1, 2


@njit(nogil=True, cache=True)
def better_table(family, before):
    """Leave the family with a table at least as good as it has; `before` has broken rules."""
    best, fewest, least = family.y.copy(), n_broken(family), family.cost[0]
    become(family, before)
    log = np.empty((MOST_LOGGED, 5), np.int64)
    _search(family, log, best, fewest, least)
    family.closed[:] = False
    family.held[:] = False
    become(family, best)
    _settle(family, log, 0, True)


@njit(nogil=True, cache=True)
def _search(family, log, best, fewest, least):
    shape = family.given.shape
    depth = shape[0] * shape[1] + 1
    pair = np.empty((depth, 2), np.int64)
    ways, expected = np.empty((depth, 3), np.int64), np.empty((depth, 3))
    tried, logged, cost = np.zeros(depth, np.int64), np.zeros(depth + 1, np.int64), np.zeros(depth)
    may_stay, given_up = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for r in range(shape[0]):
        for c in range(shape[1]):
            may_stay[r, c] = breaks(family, r, c)
    n_up = 0
    at = 0
    n_logged = _settle(family, log, 0, False)
    arrived = True
    while True:
        if arrived:
            arrived = False
            promising = n_up < fewest or (n_up == fewest and family.cost[0] < GAP * least - TIE)
            if promising and family.work[0] < MOST_WORK:
                r, c = _most_pressing(family, given_up)
                if r == NOTHING:
                    best[:], fewest, least = family.y, n_up, family.cost[0]
                else:
                    pair[at] = r, c
                    logged[at], cost[at], tried[at] = n_logged, family.cost[0], 0
                    _order(family, log, n_logged, r, c, may_stay[r, c], ways[at], expected[at])
                    at += 1
        if at == 0:
            return
        # the next way from the last node, or back to the one before
        r, c = pair[at - 1]
        n_logged = _undo(family, log, n_logged, logged[at - 1])
        family.cost[0] = cost[at - 1]
        family.closed[r, c] = family.held[r, c] = False
        if given_up[r, c]:
            given_up[r, c] = False
            n_up -= 1
        while tried[at - 1] < 3:
            way = ways[at - 1, tried[at - 1]]
            hoped = expected[at - 1, tried[at - 1]]
            tried[at - 1] += 1
            if way == GIVE_UP:
                if hoped < np.inf and n_up < fewest:
                    given_up[r, c] = True
                    n_up += 1
                    arrived = True
                    break
            elif n_up < fewest and hoped < np.inf or hoped < GAP * least - TIE:
                n_logged, arrived = _follow(family, log, n_logged, r, c, way)
                if arrived:
                    break
        if not arrived:
            at -= 1


@njit(nogil=True, cache=True)
def _most_pressing(family, given_up):
    """The broken rule of the child with the most units that need another."""
    most, rule, child = 0, NOTHING, NOTHING
    for r in range(family.given.shape[0]):
        for c in range(family.given.shape[1]):
            if breaks(family, r, c) and not given_up[r, c] and family.given[r, c] > most:
                most, rule, child = family.given[r, c], r, c
    return rule, child


@njit(nogil=True, cache=True)
def _order(family, log, n_logged, r, c, may_stay, ways, expected):
    """The ways from a node by the cost that follows, which is infinite where there is none."""
    cost = family.cost[0]
    for way in (BRING, EMPTY):
        after, found = _follow(family, log, n_logged, r, c, way)
        ways[way], expected[way] = way, family.cost[0] if found else np.inf
        _undo(family, log, after, n_logged)
        family.cost[0] = cost
        family.closed[r, c] = family.held[r, c] = False
    if expected[EMPTY] < expected[BRING]:
        ways[0], ways[1] = EMPTY, BRING
        expected[0], expected[1] = expected[1], expected[0]
    ways[2], expected[2] = GIVE_UP, 0.0 if may_stay else np.inf


@njit(nogil=True, cache=True)
def _follow(family, log, n_logged, r, c, way):
    """Decide one rule of a child and settle the rest; how many steps are logged, and success."""
    if way == BRING:
        family.held[r, c] = True
        n_logged, done = _bring(family, log, n_logged, r, c)
    else:
        family.closed[r, c] = True
        n_logged, done = _empty(family, log, n_logged, r, c)
    if done:
        n_logged = _settle(family, log, n_logged, False)
    return n_logged, done and n_logged < len(log)


@njit(nogil=True, cache=True)
def _bring(family, log, n_logged, r, c):
    step, _ = best_step(family, r, c, True, False)
    if step.sibling == NOTHING or n_logged == len(log):
        return n_logged, False
    _log(family, log, n_logged, c, step.sibling, step.gives, step.gets, 1)
    return n_logged + 1, True


@njit(nogil=True, cache=True)
def _empty(family, log, n_logged, r, c):
    chunk = 1 + family.given[r, c] // CHUNKS
    while family.given[r, c] > 0:
        step, _ = best_step(family, r, c, False, False)
        if step.sibling == NOTHING or n_logged == len(log):
            return n_logged, False
        units = min(chunk, family.y[step.gives, c])
        if step.gets != NOTHING:
            units = min(units, family.y[step.gets, step.sibling])
        if not allowed(family, c, step.sibling, step.gives, step.gets, units, False):
            units = 1
        _log(family, log, n_logged, c, step.sibling, step.gives, step.gets, units)
        n_logged += 1
    return n_logged, True


@njit(nogil=True, cache=True)
def _log(family, log, n_logged, c, s, gives, gets, units):
    log[n_logged] = c, s, gives, gets, units
    take_step(family, c, s, gives, gets, units)


@njit(nogil=True, cache=True)
def _undo(family, log, n_logged, until):
    for i in range(n_logged - 1, until - 1, -1):
        c, s, gives, gets, units = log[i]
        take_step(family, c, s, gets, gives, units)
    return until


@njit(nogil=True, cache=True)
def _settle(family, log, n_logged, strict):
    """Take steps between two children while they lower the cost; how many steps are logged."""
    width = family.y.shape[1]
    for _ in range(MOST_SWEEPS):
        before = n_logged
        for c in range(width):
            for s in range(c):
                while n_logged < len(log) and _exchange(family, log, n_logged, c, s, strict):
                    n_logged += 1
        if n_logged == before:
            break
    return n_logged


@njit(nogil=True, cache=True)
def _exchange(family, log, n_logged, c, s, strict):
    """Take the best step between two children, if one lowers the cost."""
    n = family.y.shape[0]
    there, back = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    n_there, n_back = movable(family, c, s, there), movable(family, s, c, back)
    there[n_there] = back[n_back] = NOTHING
    best, gives, gets = -TIE, NOTHING, NOTHING
    family.work[0] += (n_there + 1) * (n_back + 1)
    for a in range(n_there + 1):
        for b in range(n_back + 1):
            if there[a] == back[b]:
                continue
            cost = step_cost(family, c, s, there[a], back[b], 1)
            if cost < best and allowed(family, c, s, there[a], back[b], 1, strict):
                best, gives, gets = cost, there[a], back[b]
    if best == -TIE:
        return False
    units = _most_useful(family, c, s, gives, gets, best)
    if not allowed(family, c, s, gives, gets, units, strict):
        units = 1
    _log(family, log, n_logged, c, s, gives, gets, units)
    return True


@njit(nogil=True, cache=True)
def _most_useful(family, c, s, gives, gets, first):
    """How many units lower the cost most, if one changes it by `first`; costs are quadratic."""
    curvature = step_cost(family, c, s, gives, gets, 2) - 2 * first
    units = max(1, np.int64(np.floor((curvature / 2 - first) / curvature + 0.5)))
    if gives != NOTHING:
        units = min(units, family.y[gives, c])
    if gets != NOTHING:
        units = min(units, family.y[gets, s])
    return units
