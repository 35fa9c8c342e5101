"""What areas can hold: every way to share out is tried."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np


def slow_can_hold(tree, queries, kinds, stated, impossible):
    """A function of level, area and counts by kind, from what is stated alone."""

    def within(query, lower, upper, held):
        answer = np.zeros(queries[query].n_cells, dtype=np.int64)
        parts = zip(kinds.cell_of.tolist(), queries[query].cell_of.tolist(), strict=True)
        for kind, part in set(parts):
            answer[part] += held[kind]
        return bool(((lower <= answer) & (answer <= upper)).all())

    @cache
    def can_hold(level, area, held):
        if any(n and impossible[kinds.cell_of == k].all() for k, n in enumerate(held)):
            return False
        for s in stated[level]:
            if s.group_of is None:
                bound = s.range.lower[area], s.range.upper[area]
                if not within(s.query, *bound, held):
                    return False
        if level == tree.leaf_level:
            return True
        n_children = np.diff(tree.child_start[level][area : area + 2])[0]
        return any(shares(level, area, parts) for parts in shared_out(held, n_children))

    def shares(level, area, parts):
        """Whether the children of an area can hold these parts."""
        first = int(tree.child_start[level][area])
        each = all(can_hold(level + 1, first + i, part) for i, part in enumerate(parts))
        return each and groups_hold(level + 1, first, parts)

    def groups_hold(level, first, parts):
        for s in stated[level]:
            if s.group_of is None:
                continue
            own = s.group_of[first : first + len(parts)]
            for group in set(own[own >= 0].tolist()):
                total = np.sum([p for p, g in zip(parts, own, strict=True) if g == group], axis=0)
                if not within(s.query, s.range.lower[group], s.range.upper[group], total):
                    return False
        return True

    can_hold.shares = shares
    return can_hold


def shared_out(held, n):
    """All ways to share out counts among n children."""
    by_kind = [list(_compositions(count, n)) for count in held]
    for choice in product(*by_kind):
        yield tuple(tuple(kind[i] for kind in choice) for i in range(n))


def _compositions(total, n):
    if n == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, n - 1):
            yield (first, *rest)
