"""Edit rules of small families: the steps of the kernel written out, and all tables there are."""

from __future__ import annotations

from itertools import product

import numpy as np

NOTHING = None


class SlowFamily:
    """A family (children x cells) whose every promise is computed anew from the whole table.

    `matrices` are the queries, with weights; `allowed(y)` says whether bounds and blocked cells are
    kept; `rules` have the cells on both sides.
    """

    def __init__(self, matrices, weights, rules, allowed, x, y):
        self.matrices, self.weights, self.rules = matrices, weights, rules
        self.allowed, self.x, self.y = allowed, x, y.copy()

    def objective(self, y) -> float:
        miss = (y - self.x).T
        return sum(
            w * ((q @ miss) ** 2).sum() for q, w in zip(self.matrices, self.weights, strict=True)
        )

    def broken(self, y) -> set[tuple[int, int]]:
        return {
            (c, r)
            for c, child in enumerate(y)
            for r, (given, needed) in enumerate(self.rules)
            if child[given].sum() > 0 and child[needed].sum() == 0
        }

    def after(self, y, c, s, gives, gets):
        """The table after a step; None where it is not allowed."""
        out = y.copy()
        for cell, giver, taker in ((gives, c, s), (gets, s, c)):
            if cell is not NOTHING:
                out[giver, cell] -= 1
                out[taker, cell] += 1
        if out.min() < 0 or not self.allowed(out) or self.broken(out) - self.broken(y):
            return None
        return out

    def best_step(self, y, r, c, brings):
        """The cheapest table that is one step away, with its cost."""
        given, needed = self.rules[r]
        cells = [NOTHING, *range(y.shape[1])]
        found = []
        for s, gives, gets in product(range(len(y)), cells, cells):
            brought = gets is not NOTHING and needed[gets]
            emptied = (
                gives is not NOTHING and given[gives] and not (gets is not NOTHING and given[gets])
            )
            if s == c or gives == gets or not (brought if brings else emptied):
                continue
            table = self.after(y, c, s, gives, gets)
            if table is not None:
                found.append((self.objective(table) - self.objective(y), table))
        return min(found, key=lambda pair: pair[0], default=(np.inf, None))

    def mend(self) -> None:
        """Child by child and rule by rule, as long as steps mend anything."""
        mended = True
        while mended:
            mended = False
            for c, r in product(range(len(self.y)), range(len(self.rules))):
                if (c, r) in self.broken(self.y):
                    mended |= self._mend_one(r, c)

    def _mend_one(self, r, c) -> bool:
        price, brought = self.best_step(self.y, r, c, True)
        emptied, spent = self.y, 0.0
        while (c, r) in self.broken(emptied):
            cost, emptied = self.best_step(emptied, r, c, False)
            spent += cost
            if emptied is None or spent >= price:
                break
        chosen = emptied if emptied is not None and spent < price else brought
        if chosen is not None:
            self.y = chosen
        return chosen is not None


def all_tables(parent, n_children):
    """Every way to share out a small parent: children x cells."""
    ways = [list(_shared_out(int(units), n_children)) for units in parent]
    for columns in product(*ways):
        yield np.array(columns, dtype=np.int64).T


def _shared_out(units, n_children):
    if n_children == 1:
        yield (units,)
        return
    for first in range(units + 1):
        for rest in _shared_out(units - first, n_children - 1):
            yield (first, *rest)


def best_table(family: SlowFamily, parent):
    """Fewest broken rules and least objective over all tables that are allowed."""
    return min(
        (len(family.broken(y)), family.objective(y))
        for y in all_tables(parent, len(family.y))
        if family.allowed(y)
    )
