"""What exact totals allow the true counts of areas to be.

No count is negative, so a cell of an area holds at most the totals of the areas that it shares
leaves with. With a single cell, it holds at least the totals of those that lie in it as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates, Floats
from trellis.model.tables.carried_bounds import Range
from trellis.model.trees.areas import Category, ancestors
from trellis.model.trees.hierarchy import Hierarchy

ANYTHING = Range(np.zeros(()), np.full((), np.inf))
"""What is known of a count without any facts."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactTotals:
    """The exact totals of the areas of one level; no level below it has any."""

    hierarchy: Hierarchy
    level: int
    totals: NDArray[np.int64]
    n_cells: int

    @classmethod
    def of_counts(cls, plan: Plan, published: Estimates) -> Self | None:
        """Those that a release of counts keeps; None if it has none."""
        if not plan.unprotected_totals:
            return None
        level = published.hierarchy.index(plan.unprotected_totals[-1])
        totals = np.rint(published.counts[level].sum(axis=1)).astype(np.int64)
        return cls(published.hierarchy, level, totals, plan.schema.n_cells)

    def of_level(self, level: int) -> Range:
        """What the cells of the areas of a level may hold: areas x 1, or one range for all."""
        if self.level == 0 and self.hierarchy.size(level) > 1:
            return Range(np.zeros(()), np.array(float(self.totals[0])))
        if level <= self.level:
            totals = self.totals
            for above in reversed(range(level, self.level)):
                totals = self.hierarchy.sum_children(above, totals)
            return self._range(totals, totals)
        inside = self._areas_on(level)
        alone = np.bincount(inside) == 1
        return self._range(np.where(alone, self.totals, 0)[inside], self.totals[inside])

    def of_category(self, category: Category) -> Range:
        """What the cells of areas of interest may hold: entities x 1."""
        leaf_area = ancestors(self.hierarchy, self.level)
        # Leaves of an area are contiguous, so pairs repeat in runs, and few are left to sort.
        key = category.member.astype(np.int64) * self.totals.size + leaf_area
        begins = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        length = np.diff(np.append(begins, key.size))[key[begins] >= 0]
        pair, place = np.unique(key[begins][key[begins] >= 0], return_inverse=True)
        n_leaves = np.bincount(place, length)
        entity, area = np.divmod(pair, self.totals.size)
        whole = n_leaves == np.bincount(leaf_area)[area]
        least, most = np.zeros((2, category.size), dtype=np.int64)
        np.add.at(most, entity, self.totals[area])
        np.add.at(least, entity[whole], self.totals[area[whole]])
        return self._range(least, most)

    def _range(self, least: NDArray[np.int64], most: NDArray[np.int64]) -> Range:
        """As a total can be shared out among several cells, it is no lower bound of one."""
        lower = least if self.n_cells == 1 else np.zeros_like(most)
        return Range(lower.astype(np.float64)[:, None], most.astype(np.float64)[:, None])

    def _areas_on(self, level: int) -> NDArray[np.int64]:
        """For each area of a level below, the area with an exact total that it lies in."""
        inside = np.arange(self.totals.size)
        for below in range(self.level + 1, level + 1):
            inside = inside[self.hierarchy.parents(below)]
        return inside


def level_range(facts: ExactTotals | None, level: int) -> Range:
    return ANYTHING if facts is None else facts.of_level(level)


def category_range(facts: ExactTotals | None, category: Category) -> Range:
    return ANYTHING if facts is None else facts.of_category(category)


def flow_range(plan: Plan, level: int, total: int) -> Range:
    """What a flow may be where the number of all trips is exact; a lone pair has that number."""
    if not plan.unprotected_totals:
        return ANYTHING
    least = total if plan.sizes[level] == 1 else 0
    return Range(np.array(float(least)), np.array(float(total)))


def settled(std_error: Floats, allowed: Range, counts: NDArray) -> Floats:
    """Standard errors, 0 where facts alone fix what is published.

    A relaxed method may publish something other than the facts allow; that is not exact.
    """
    known = (allowed.lower == allowed.upper) & (counts == allowed.lower)
    return np.where(known, 0.0, std_error) if known.any() else std_error
