"""A table of less cost that keeps the edit rules of a family.

`search` decides how each broken rule is kept. In families that are not large the best table is then
improved: two children at a time decide again while the rest keep their rules as they do, two change
places, and short chains of steps are tried. The search, the new decisions and the rest each end
after `MOST_WORK` steps looked at: a limit on time would let the outcome depend on the machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.rules.family import become, broken_pairs, n_broken
from trellis.numerics.histograms.rules.search import LARGE, search
from trellis.numerics.histograms.rules.second_looks import change_places, take_chain, take_two
from trellis.numerics.histograms.rules.settle import MOST_WORK, settle
from trellis.numerics.histograms.rules.steps import STRICT


@njit(nogil=True, cache=True)
def better_table(family, before):
    """Leave the family with a table at least as good as it has; `before` breaks rules."""
    best, score = family.y.copy(), np.array([n_broken(family), family.cost[0]])
    become(family, before)
    may_stay, everyone = broken_pairs(family), np.ones(before.shape[1], np.bool_)
    family.work[0] = 0
    search(family, everyone, may_stay, best, score)
    if family.y.size <= LARGE:
        _search_again(family, may_stay, best, score)
    family.closed[:] = False
    family.held[:] = False
    become(family, best)
    if family.y.size <= LARGE:
        family.work[0] = 0
        settle(family, everyone, STRICT)
        while change_places(family) or take_two(family) or take_chain(family):
            everyone[:] = True
            settle(family, everyone, STRICT)


@njit(nogil=True, cache=True)
def _search_again(family, may_stay, best, score):
    """Let two children at a time decide again, while the others keep their rules as they do."""
    width, quiet = family.y.shape[1], 0
    family.work[0] = 0
    while width > 1:
        for c in range(width):
            for s in range(c):
                least = score.copy()
                become(family, best)
                family.work[0] += family.y.size
                search(family, _free(family, c, s), may_stay, best, score)
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
