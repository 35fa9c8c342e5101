"""A table of less cost that keeps the edit rules of a family, by branch and bound.

Every rule that a child breaks is kept in one of two ways: someone comes into the needed cells, or
all leave the given ones. The search goes both ways, the cheaper first, and after each decision it
brings the table as near to the real one as steps between two children can. Rules that are not
decided yet may break on the way, so a unit may come from a sibling that cannot spare it; that one
is decided later. A way that costs as much as the best table so far ends there. Rules that stay
broken, because sums or bounds leave no room, weigh more than any cost.

What a way costs is a lower bound but for what steps between two children cannot improve. In large
families the cost of rules that are still broken is added, as it was when they were first decided,
and children that take no part are not brought near. In others the best table is then improved: two
children at a time decide again while the rest keep their rules as they do, two change places, and
short chains of steps are tried. The search, the new decisions and the rest each end after
`MOST_WORK` steps looked at: a limit on time would let the outcome depend on the machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.rules.steps import (
    BRING,
    EMPTY,
    MOST_LOGGED,
    NOTHING,
    ONE,
    RELAXED,
    START,
    STRICT,
    allowed,
    become,
    best_step,
    breaks,
    broken_pairs,
    keeps_all,
    movable,
    n_broken,
    step_cost,
    take_step,
    undo,
)
from trellis.numerics.histograms.whole_numbers.rounding import TIE

MOST_WORK = 1_000_000
MOST_SWEEPS = 30
MOST_PAIRED = 5000
"""Steps up to which two at once are tried."""
MOST_LINKS = 4
LARGE = 1000
"""Cells x children above which a family is large."""
CHUNKS = 16
"""Many units leave a child in about so many parts."""
GAP = 0.995
"""Ways that cost more than this part of the best table are not followed."""

GIVE_UP = np.int64(2)
"""The third way, if the rule was broken before the search: it stays so."""
ROOT = np.int64(0)


class _Tree(NamedTuple):
    """The decisions from the root to where the search is, one row each, and what it found."""

    pair: Ints
    """Rule and child."""
    ways: Ints
    expected: Floats
    """The three ways in the order in which they are tried, and the cost after each."""
    tried: Ints
    logged: Ints
    cost: Floats
    """How many ways were tried, and the log and the cost before the decision."""
    may_stay: Marks
    given_up: Marks
    toll: Floats
    """Rules x children: what the cheaper way cost at the first decision."""
    best: Ints
    score: Floats
    """The best table, its broken rules and its cost."""


@njit(nogil=True, cache=True)
def better_table(family, before):
    """Leave the family with a table at least as good as it has; `before` breaks rules."""
    best, score = family.y.copy(), np.array([n_broken(family), family.cost[0]])
    become(family, before)
    may_stay, everyone = broken_pairs(family), np.ones(before.shape[1], np.bool_)
    family.work[0] = 0
    _search(family, everyone, may_stay, best, score)
    if family.y.size <= LARGE:
        _search_again(family, may_stay, best, score)
    family.closed[:] = False
    family.held[:] = False
    become(family, best)
    if family.y.size <= LARGE:
        family.work[0] = 0
        _settle(family, everyone, STRICT)
        while _change_places(family) or _take_two(family) or _take_chain(family):
            everyone[:] = True
            _settle(family, everyone, STRICT)


@njit(nogil=True, cache=True)
def _search_again(family, may_stay, best, score):
    """Let two children at a time decide again, while the others keep their rules as they do."""
    width, quiet = family.y.shape[1], 0
    family.work[0] = 0
    while True:
        for c in range(width):
            for s in range(c):
                least = score.copy()
                become(family, best)
                family.work[0] += family.y.size
                _search(family, _free(family, c, s), may_stay, best, score)
                quiet = quiet + 1 if (score == least).all() else 0
                if 2 * quiet >= width * (width - 1) or family.work[0] > MOST_WORK:
                    return


@njit(nogil=True, cache=True)
def _free(family, c, s):
    """Hold the others to how they keep their rules, where they do; returns who is free."""
    free = np.zeros(family.y.shape[1], np.bool_)
    free[c] = free[s] = True
    family.held[:] = (family.needed > 0) & ~free
    family.closed[:] = (family.needed == 0) & (family.given == 0) & ~free
    return free


@njit(nogil=True, cache=True)
def _search(family, fresh, may_stay, best, score):
    """Decide about all rules that are broken once fresh children are near to the real ones."""
    tree = _new_tree(family, may_stay, best, score)
    if family.y.size <= LARGE:
        _settle(family, fresh, RELAXED)
    depth = _arrive(family, tree, ROOT)
    while depth > ROOT:
        if _go_on(family, tree, depth - 1):
            depth = _arrive(family, tree, depth)
        else:
            depth -= 1


@njit(nogil=True, cache=True)
def _new_tree(family, may_stay, best, score):
    shape = family.given.shape
    most = shape[0] * shape[1]  # each pair is decided once on a way
    return _Tree(
        np.empty((most, 2), np.int64), np.empty((most, 3), np.int64), np.empty((most, 3)),
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most),
        may_stay, np.zeros(shape, np.bool_), np.zeros(shape), best, score,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _arrive(family, tree, depth):
    """Keep a table that is done, or begin a decision; returns the depth that follows."""
    rule, child, toll = _most_pressing(family, tree)
    cost = family.cost[0] + toll
    if family.work[0] > MOST_WORK or not _promises(tree, tree.given_up.sum(), cost):
        return depth
    if rule == NOTHING:
        tree.best[:] = family.y
        tree.score[0], tree.score[1] = tree.given_up.sum(), family.cost[0]
        return depth
    tree.pair[depth] = rule, child
    tree.tried[depth], tree.logged[depth] = 0, family.logged[0]
    tree.cost[depth] = family.cost[0]
    _order(family, tree, depth)
    return depth + 1


@njit(nogil=True, cache=True)
def _promises(tree, n_broken, cost):
    fewest, least = tree.score
    return n_broken < fewest or (n_broken == fewest and cost < GAP * least - TIE)


@njit(nogil=True, cache=True)
def _most_pressing(family, tree):
    """The broken rule of the child with the most given units, and the toll of the others."""
    most, rule, child, toll = 0, NOTHING, NOTHING, 0.0
    for r in range(family.given.shape[0]):
        for c in range(family.given.shape[1]):
            if breaks(family, r, c) and not tree.given_up[r, c]:
                toll += tree.toll[r, c]
                if family.given[r, c] > most:
                    most, rule, child = family.given[r, c], r, c
    return rule, child, toll


@njit(nogil=True, cache=True)
def _order(family, tree, at):
    """Look at both ways from a node; a way that does not exist costs infinity."""
    ways, expected, (r, c) = tree.ways[at], tree.expected[at], tree.pair[at]
    for way in (BRING, EMPTY):
        found = _follow(family, r, c, way)
        ways[way], expected[way] = way, family.cost[0] if found else np.inf
        _back(family, tree, at)
    if expected[EMPTY] <= expected[BRING] + TIE:
        ways[0], ways[1] = EMPTY, BRING
        expected[0], expected[1] = expected[1], expected[0]
    ways[2], expected[2] = GIVE_UP, -np.inf if tree.may_stay[r, c] else np.inf
    if family.y.size > LARGE and tree.toll[r, c] == 0 and expected[0] < np.inf:
        tree.toll[r, c] = max(0.0, expected[0] - tree.cost[at])


@njit(nogil=True, cache=True)
def _back(family, tree, at):
    r, c = tree.pair[at]
    undo(family, tree.logged[at], tree.cost[at])
    family.closed[r, c] = family.held[r, c] = tree.given_up[r, c] = False


@njit(nogil=True, cache=True)
def _go_on(family, tree, at):
    """Take the next way of a decision that promises anything; False if there is none."""
    _back(family, tree, at)
    r, c = tree.pair[at]
    while tree.tried[at] < 3:
        way, expected = tree.ways[at, tree.tried[at]], tree.expected[at, tree.tried[at]]
        tree.tried[at] += 1
        tree.given_up[r, c] = way == GIVE_UP
        promises = expected < np.inf and _promises(tree, tree.given_up.sum(), expected)
        if promises and (way == GIVE_UP or _follow(family, r, c, way)):
            return True
        _back(family, tree, at)
    return False


@njit(nogil=True, cache=True)
def _follow(family, r, c, way):
    """Decide one rule of a child and bring the rest near; False if that cannot be."""
    chunk, since = ONE, family.logged[0]
    if way == BRING:
        family.held[r, c] = True
    else:
        family.closed[r, c] = True
        chunk += family.given[r, c] // CHUNKS
    while family.needed[r, c] == 0 if way == BRING else family.given[r, c] > 0:
        step, _ = best_step(family, r, c, way, RELAXED)
        if step.sibling == NOTHING or family.logged[0] >= MOST_LOGGED:
            return False
        _take(family, c, step.sibling, step.gives, step.gets, chunk, RELAXED)
    fresh = np.empty(family.y.shape[1], np.bool_)
    _mark_fresh(family, since, fresh)
    _settle(family, fresh, RELAXED)
    return family.logged[0] < MOST_LOGGED


@njit(nogil=True, cache=True)
def _take(family, c, s, gives, gets, units, strict):
    """Take a step of as many units, if there are so many and they may go, or else of one."""
    if gives != NOTHING:
        units = min(units, family.y[gives, c])
    if gets != NOTHING:
        units = min(units, family.y[gets, s])
    if not allowed(family, c, s, gives, gets, units, strict):
        units = ONE
    take_step(family, c, s, gives, gets, units)


@njit(nogil=True, cache=True)
def _settle(family, fresh, strict):
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
        _mark_fresh(family, before, fresh)


@njit(nogil=True, cache=True)
def _mark_fresh(family, since, fresh):
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
    _take(family, c, s, gives, gets, max(ONE, units), strict)
    return True


@njit(nogil=True, cache=True)
def _change_places(family):
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
                    _mark_fresh(family, logged, fresh)
                    _settle(family, fresh, STRICT)
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
def _take_two(family):
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
def _take_chain(family):
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
    _mark_fresh(family, since, taken)
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
