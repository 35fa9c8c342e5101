"""Siblings exchange units until none of them breaks an edit rule, or nothing more can be done.

First a table that keeps the rules is made quickly. A broken rule `a requires b` is mended in the
cheaper of two ways, by strict steps of `steps`:

    bring:  one step that gets a unit of b,
    empty:  steps that each give a unit of a and get none, until the child has none left,

where the cost is what the steps add to the weighted squared residuals of `rounding`.

Where no such steps exist, all units of a, and if that will not do all units of the child, go to a
sibling that counts someone in b, and on with all of that one while it breaks a rule. This empties
one child after the other, so it ends, at the worst with one child that holds what the parent holds.
So without bounds and blocked cells, the children of a parent that keeps all rules keep them all.

Where b is plentiful that is all: each child got the unit that was cheapest. Where it is scarce, a
unit would have been cheaper that a sibling cannot spare, and someone has to be moved far. Then
`search` looks for a table of less cost, and in small families it always does.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.rules.better_table import better_table
from trellis.numerics.histograms.rules.family import (
    NOTHING,
    ONE,
    START,
    breaks,
    broken_pairs,
    family_of,
    keeps_all,
    n_broken,
    take_step,
    undo,
)
from trellis.numerics.histograms.rules.steps import BRING, EMPTY, STRICT, best_step
from trellis.numerics.histograms.whole_numbers.weighted_queries import TIE

MOST_EMPTIED = 64
"""Units of a that are moved away one by one; more are moved together."""

SMALL = 256
"""Cells x children up to which a better table is looked for if rules cost more than `NEAR`."""
NEAR = 1.02
DEAR = 2.0
"""What one rule may cost above the cheapest step before a better table is looked for, in units of
what one person costs who moves between exact siblings."""


@njit(nogil=True, cache=True)
def enforce(bounds, queries, rules, blocked, outside, e, y):
    """Mend y (cells x children), which keeps all bounds; returns how many rules stay broken.

    The child `outside` stands for the rest of the world: its residuals cost nothing. `NOTHING` if
    there is none. Residuals `e` are kept up to date.
    """
    family = family_of(bounds, queries, rules, blocked, outside, e, y)
    before, cost = y.copy(), family.cost[0]
    regret = _mend_all(family)
    small = y.size <= SMALL and (family.cost[0] > NEAR * cost or n_broken(family) > 0)
    if outside == NOTHING and (small or regret > DEAR * queries.weight.sum()):
        better_table(family, before)
    return n_broken(family)


@njit(nogil=True, cache=True)
def _mend_all(family):
    """Mend rule by rule; returns the most that one cost above a step that may break others."""
    regret = 0.0
    while True:
        mended = 0
        for c in range(family.given.shape[1]):
            for r in range(family.given.shape[0]):
                if breaks(family, r, c):
                    done, more = _mend(family, r, c)
                    mended += done
                    regret = max(regret, more)
        if mended == 0 and family.outside == NOTHING:
            mended = _gather_one(family)
            regret = np.inf if mended else regret
        if mended == 0:
            return regret


@njit(nogil=True, cache=True)
def _mend(family, r, c):
    """Mend one broken rule of one child: whether steps do it, and their regret."""
    bring, cheapest = best_step(family, r, c, BRING, STRICT)
    family.logged[0] = START
    cost = family.cost[0]
    if family.given[r, c] <= MOST_EMPTIED:
        while breaks(family, r, c) and family.cost[0] - cost <= bring.cost + TIE:
            step, _ = best_step(family, r, c, EMPTY, STRICT)
            if step.sibling == NOTHING:
                break
            take_step(family, c, step.sibling, step.gives, step.gets, ONE)
    spent = family.cost[0] - cost
    if not breaks(family, r, c) and spent <= bring.cost + TIE:  # no sibling loses anyone
        return True, spent - min(spent, cheapest)
    undo(family, START, cost)
    if bring.sibling == NOTHING:
        return False, 0.0
    take_step(family, c, bring.sibling, bring.gives, bring.gets, ONE)
    return True, bring.cost - cheapest


@njit(nogil=True, cache=True)
def _gather_one(family):
    """Mend the first broken rule that moves of many units at once can mend; 0 if there is none."""
    for c in range(family.y.shape[1]):
        for r in range(family.given.shape[0]):
            if not breaks(family, r, c):
                continue
            for everything in (False, True):
                if _gather(family, r, c, everything):
                    return 1
    return 0


@njit(nogil=True, cache=True)
def _gather(family, r, c, everything):
    """Move all units of the rule's cells, or everything, to where what they require is.

    False, and nothing changed, if that breaks a bound or another rule.
    """
    broken, cost = broken_pairs(family), family.cost[0]
    family.logged[0] = START
    giver, rule = c, r
    while rule != NOTHING:
        taker = np.argmax(family.needed[rule])
        if family.needed[rule, taker] == 0 or not _pour(family, rule, giver, taker, everything):
            break
        giver, rule = taker, _first_broken(family, taker) if everything else NOTHING
    if not breaks(family, r, c) and keeps_all(family, broken):
        return True
    undo(family, START, cost)
    return False


@njit(nogil=True, cache=True)
def _pour(family, r, giver, taker, everything):
    """Move all units of a rule's cells, or of all cells; False if the taker must not have one."""
    for j in range(family.y.shape[0]):
        units = family.y[j, giver]
        if units > 0 and (everything or family.rules.given[r, j]):
            if family.blocked.size and family.blocked[j, taker]:
                return False
            take_step(family, giver, taker, j, NOTHING, units)
    return True


@njit(nogil=True, cache=True)
def _first_broken(family, c):
    for r in range(family.given.shape[0]):
        if breaks(family, r, c):
            return r
    return NOTHING
