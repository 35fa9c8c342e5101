"""Standard errors of areas of any shape, from the noise on a tree alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np

from trellis.errors import StructureError
from trellis.model.arrays import Floats, Marks
from trellis.model.plans.plan import Plan
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.numerics.trees import gls as tree_gls
from trellis.numerics.trees.areas import entity_variances


@dataclass(frozen=True, slots=True, eq=False)
class AreaErrors:
    """A measured tree with the variance of each node's estimate from its own subtree."""

    tree: Hierarchy
    subtree: list[Floats]

    @classmethod
    def on(
        cls,
        plan: Plan,
        hierarchy: Hierarchy,
        spine: Spine | None = None,
        empty: Sequence[Marks] = (),
    ) -> Self:
        """The tree that the plan measures: the spine, or the hierarchy itself.

        `empty` marks, by level of that tree, the nodes that are known to hold nothing.
        """
        tree = hierarchy if spine is None else spine.hierarchy
        variance = node_variances(plan, tree, spine)
        for values, marks in zip(variance, empty, strict=False):
            values[marks] = 0.0
        return cls.of_variances(plan, tree, variance)

    @classmethod
    def of_variances(cls, plan: Plan, tree: Hierarchy, variance: Sequence[Floats]) -> Self:
        """A tree whose nodes are measured with these variances."""
        subtree = tree_gls.variances_up(tree, variance)
        if subtree[0][0] == inf:
            raise StructureError("Nothing that is measured determines the total of the root.")
        if plan.cell_query == DETAILED and plan.query(plan.levels[0], TOTAL) is not None:
            # The exact sum of the root's cells leaves their contrasts only.
            subtree[0] = subtree[0] * (1 - 1 / plan.schema.n_cells)
        return cls(tree, subtree)

    def of(self, category: Category) -> Floats:
        """One standard error per entity; the category's leaves are in the tree's order."""
        return np.sqrt(entity_variances(self.tree, category, self.subtree))


def node_variances(plan: Plan, tree: Hierarchy, spine: Spine | None) -> list[Floats]:
    """Per level, the variance of the noise of every node; infinity where nothing is measured."""
    levels = [np.full(size, inf) for size in tree.sizes]
    for query in plan.queries:
        if query.query != plan.cell_query:
            continue
        values = levels[tree.index(query.level)]
        if query.share_class is None or spine is None:
            values[:] = query.assumed_variance
        else:
            values[spine.rows(query.level, query.share_class)] = query.assumed_variance
    return levels
