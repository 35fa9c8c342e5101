"""The reductions of a spec, applied one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trellis.errors import SpecError
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.branch import branch
from trellis.planning.spine.bypass import bypass
from trellis.planning.spine.group import SUFFIX, group_level
from trellis.planning.spine.node_shares import NodeShares
from trellis.planning.spine.reduction import Reduction, nothing
from trellis.planning.spine.regroup import Cut, regroup_leaves

LevelShares = Callable[[tuple[str, ...]], Mapping[str, Fraction]]
"""The shares of the measured levels, given the levels of a tree."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Put the union of some areas on the tree, at a level and below it."""

    level: str
    inside: tuple[str, ...]

    def apply(self, tree: Hierarchy, areas: Mapping[str, Category]) -> Reduction:
        marks = np.any([areas[name].member >= 0 for name in self.inside], axis=0)
        return branch(tree, self.level, marks)

    def in_words(self) -> str:
        return f"branch at {self.level}: {', '.join(self.inside)} apart from the rest"


@dataclass(frozen=True, slots=True)
class RegroupLeaves:
    """Redraw the level above the leaves."""

    areas: tuple[str, ...]
    fanout_cutoff: int = 12
    cut: Cut = "fill"

    def apply(self, tree: Hierarchy, areas: Mapping[str, Category]) -> Reduction:
        chosen = {name: areas[name] for name in self.areas}
        return regroup_leaves(tree, chosen, self.fanout_cutoff, self.cut)

    def in_words(self) -> str:
        return (
            f"leaves regrouped by {', '.join(self.areas)} (fanout_cutoff {self.fanout_cutoff}, "
            f"{self.cut})"
        )


@dataclass(frozen=True, slots=True)
class GroupLevel:
    """Put a level of groups above a level."""

    level: str
    areas: tuple[str, ...]
    fanout_cutoff: int = 12
    name: str | None = None

    @property
    def group_name(self) -> str:
        return self.name or self.level + SUFFIX

    def apply(self, tree: Hierarchy, areas: Mapping[str, Category]) -> Reduction:
        chosen = {name: areas[name] for name in self.areas}
        return group_level(tree, self.level, chosen, self.fanout_cutoff, self.group_name)

    def in_words(self) -> str:
        return (
            f"{self.group_name} above {self.level} by {', '.join(self.areas)} "
            f"(fanout_cutoff {self.fanout_cutoff})"
        )


@dataclass(frozen=True, slots=True)
class Bypass:
    """Bypass parents whose share does more good one level below."""

    def in_words(self) -> str:
        return "parents bypassed where no estimate gets worse"


Redrawing = Branch | RegroupLeaves | GroupLevel
Step = Redrawing | Bypass


def check_steps(
    hierarchy: Hierarchy, steps: Sequence[Step], known: Sequence[str], n_exact: int
) -> None:
    """Refuse steps that cannot be carried out, or that would change levels with exact totals."""
    levels = list(hierarchy.level_names)
    exact = levels[:n_exact]
    for number, step in enumerate(steps):
        if isinstance(step, Bypass):
            if number + 1 < len(steps):
                raise SpecError("spine: bypass comes last; shares are moved on the final tree.")
            continue
        for name in step.inside if isinstance(step, Branch) else step.areas:
            if name not in known:
                raise SpecError(
                    f"spine names areas {name!r}; there are {', '.join(known) or 'none'}. "
                    "Declare them under areas."
                )
        redrawn = levels[-2] if isinstance(step, RegroupLeaves) and len(levels) > 1 else None
        if isinstance(step, Branch | GroupLevel):
            if step.level not in levels:
                raise SpecError(f"spine names level {step.level!r}; there are {', '.join(levels)}.")
            redrawn = step.level
        if redrawn is not None and redrawn in exact and not isinstance(step, GroupLevel):
            raise SpecError(
                f"spine: level {redrawn!r} cannot be redrawn, because its totals are published "
                f"exactly: {step.in_words()}. Redraw a level below it."
            )
        if isinstance(step, GroupLevel):
            at = levels.index(step.level)
            if step.level in exact:
                raise SpecError(
                    f"spine: groups of {step.level!r} would gain nothing, because its totals are "
                    "published exactly. Group a level below it."
                )
            if step.group_name in levels:
                raise SpecError(
                    f"spine: there is a level {step.group_name!r} already. "
                    "Give the groups another name."
                )
            levels.insert(at, step.group_name)


def levels_after(hierarchy: Hierarchy, steps: Sequence[Step]) -> list[str]:
    """The levels of the spine that these steps make, root first."""
    levels = list(hierarchy.level_names)
    for step in steps:
        if isinstance(step, GroupLevel):
            levels.insert(levels.index(step.level), step.group_name)
    return levels


def build(
    hierarchy: Hierarchy,
    steps: Sequence[Step],
    categories: Mapping[str, Category],
    level_shares: LevelShares,
    mechanism: str,
    keep_levels: int,
) -> Reduction:
    """The final tree, with the share of every node."""
    redrawn = redraw(hierarchy, [s for s in steps if not isinstance(s, Bypass)], categories)
    tree = redrawn.hierarchy
    by_level = level_shares(tree.level_names)
    shares = [by_level.get(name, Fraction(0)) for name in tree.level_names]
    if any(isinstance(step, Bypass) for step in steps):
        return redrawn.then(bypass(tree, shares, mechanism, keep_levels=keep_levels))
    given = NodeShares.of(tree, shares)
    return Reduction(hierarchy, tree, redrawn.leaf_order, given)


def redraw(
    hierarchy: Hierarchy, steps: Sequence[Redrawing], categories: Mapping[str, Category]
) -> Reduction:
    """All steps that change the tree; areas may be categories or published levels."""
    total = nothing(hierarchy)
    for step in steps:
        names = step.inside if isinstance(step, Branch) else step.areas
        areas = {
            name: areas_named(hierarchy, categories, name).carried(total.leaf_order)
            for name in names
        }
        total = total.then(step.apply(total.hierarchy, areas))
    return total


def areas_named(hierarchy: Hierarchy, categories: Mapping[str, Category], name: str) -> Category:
    """A category, or the areas of a published level as one."""
    return categories[name] if name in categories else Category.of_level(hierarchy, name)
