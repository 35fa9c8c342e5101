"""Which way to keep each broken rule of a family, by branch and bound.

Every rule that a child breaks is kept in one of two ways: someone comes into the needed cells, or
all leave the given ones. The search goes both ways, the cheaper first, and after each decision it
brings the table as near to the real one as steps between two children can. Rules that are not
decided yet may break on the way, so a unit may come from a sibling that cannot spare it; that one
is decided later. A way that costs as much as the best table so far ends there. Rules that stay
broken, because sums or bounds leave no room, weigh more than any cost.

What a way costs is a lower bound but for what steps between two children cannot improve. In large
families the cost of rules that are still broken is added, as it was when they were first decided,
and children that take no part are not brought near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.rules.family import MOST_LOGGED, NOTHING, ONE, breaks, undo
from trellis.numerics.histograms.rules.settle import MOST_WORK, mark_fresh, settle, take_units
from trellis.numerics.histograms.rules.steps import BRING, EMPTY, RELAXED, best_step
from trellis.numerics.histograms.whole_numbers.weighted_queries import TIE

LARGE = 1000
"""Cells x children above which a family is large."""

CHUNKS = 16
"""Many units leave a child in about this many parts."""

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
def search(family, fresh, may_stay, best, score):
    """Decide about all rules that are broken once fresh children are near to the real ones."""
    tree = _new_tree(family, may_stay, best, score)
    if family.y.size <= LARGE:
        settle(family, fresh, RELAXED)
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
        take_units(family, c, step.sibling, step.gives, step.gets, chunk, RELAXED)
    fresh = np.empty(family.y.shape[1], np.bool_)
    mark_fresh(family, since, fresh)
    settle(family, fresh, RELAXED)
    return family.logged[0] < MOST_LOGGED
