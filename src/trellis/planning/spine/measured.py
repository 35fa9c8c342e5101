"""The trees of a spine that errors are computed on before its shares, or its budget, are known.

Under zCDP a spine does not depend on the shares: parents with one child are bypassed, whatever they
have. The share of a node is then the sum of the shares of some levels. Under pure DP, shares decide
which parents are bypassed. They are chosen for the tree without that step, which makes no estimate
worse, and then the budget for the final tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine, SpinePlan
from trellis.planning.forecast.area_variance import ONE_SLOT, MeasuredTree
from trellis.planning.spine.reduction import Reduction
from trellis.planning.spine.steps import Bypass, Step, build, levels_after, redraw
from trellis.privacy.mechanisms import DiscreteGaussian


@dataclass(frozen=True, eq=False)
class SpineTrees:
    """What decides on a spine besides the shares; levels in `exact` carry no noise."""

    hierarchy: Hierarchy
    steps: tuple[Step, ...]
    categories: Mapping[str, Category]
    exact: tuple[str, ...]
    mechanism: str

    @property
    def follows_shares(self) -> bool:
        """Whether other shares make another tree."""
        bypasses = any(isinstance(step, Bypass) for step in self.steps)
        return bypasses and self.mechanism != DiscreteGaussian.name

    @property
    def levels(self) -> list[str]:
        return levels_after(self.hierarchy, self.steps)

    @property
    def measurable(self) -> list[str]:
        """The levels of the spine that may get a share."""
        return [name for name in self.levels if name not in self.exact]

    def redrawn(self) -> Reduction:
        """The spine before any share is moved."""
        steps = [step for step in self.steps if not isinstance(step, Bypass)]
        return redraw(self.hierarchy, steps, self.categories)

    @cached_property
    def by_level(self) -> MeasuredTree:
        """A slot for every level that may get a share.

        The shares 1, 2, 4 .. of the levels, scaled, mark them: the binary digits of a node's share
        are the levels whose shares it got.
        """
        slots = self.measurable
        steps = [s for s in self.steps if not (self.follows_shares and isinstance(s, Bypass))]
        whole = 2 ** len(slots) - 1
        marks = {name: Fraction(2**i, whole) for i, name in enumerate(slots)}
        built = self._build(steps, marks)
        assert built.node_shares is not None
        digits = [int(share * whole) for share in built.node_shares.values]
        mixing = [[float(n >> i & 1) for i in range(len(slots))] for n in digits]
        return _measured(built, np.array(mixing), tuple(slots))

    def in_shares(self, shares: Mapping[str, Fraction]) -> MeasuredTree:
        """One slot, the budget, split over the levels in these shares."""
        if self.follows_shares:
            built = self._build(self.steps, shares)
            assert built.node_shares is not None
            column = [[float(share)] for share in built.node_shares.values]
            return _measured(built, np.array(column), ONE_SLOT)
        return self.by_level.split({name: float(share) for name, share in shares.items()})

    def _build(self, steps: Sequence[Step], shares: Mapping[str, Fraction]) -> Reduction:
        keep_levels = len(self.exact)
        return build(
            self.hierarchy, steps, self.categories, lambda _: shares, self.mechanism, keep_levels
        )


def _measured(built: Reduction, mixing: np.ndarray, slots: tuple[str, ...]) -> MeasuredTree:
    assert built.node_shares is not None
    return MeasuredTree(built.hierarchy, built.leaf_order, built.node_shares.classes, mixing, slots)


def measured_by_plan(spine: Spine, plan: SpinePlan) -> MeasuredTree:
    """The final tree of a plan, as a function of its budget."""
    first = np.cumsum([0, *(len(shares) for shares in plan.shares)])
    classes = tuple(
        number.astype(np.int64) + start
        for number, start in zip(spine.classes, first[:-1], strict=True)
    )
    column = np.array([[float(share)] for shares in plan.shares for share in shares])
    return MeasuredTree(spine.hierarchy, spine.leaf_order, classes, column, ONE_SLOT)
