"""Steps between two children of a family: which are allowed, and which are the cheapest.

A step keeps all bounds and puts no one into a blocked cell. A strict step also breaks no rule that
was kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.numerics.histograms.rules.family import NOTHING, ONE, breaks, step_cost

BRING, EMPTY = np.int64(0), np.int64(1)
"""Ways to keep a rule: someone comes into the needed cells, or all leave the given ones."""
STRICT, RELAXED = np.bool_(True), np.bool_(False)


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
