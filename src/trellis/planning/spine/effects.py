"""What a spine does for areas and levels, foreseen without counts: distances, standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.forecast import ExpectedError, Forecast
from trellis.model.plans.plan import Plan
from trellis.model.trees.areas import Category, Effect
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine


@dataclass(frozen=True, slots=True, eq=False)
class EntityEffects:
    """Every entity of a category, or area of a level: before and after."""

    category: Category
    is_level: bool
    distance_before: NDArray[np.int32]
    distance_after: NDArray[np.int32]
    error_before: NDArray[np.float64]
    error_after: NDArray[np.float64]

    def means(self) -> Effect:
        return Effect(
            self.category.name,
            self.is_level,
            self.category.size,
            *(
                float(np.mean(values))
                for values in (
                    self.distance_before, self.distance_after, self.error_before, self.error_after
                )
            ),
        )  # fmt: skip


def with_effects(
    plan: Plan,
    hierarchy: Hierarchy,
    spine: Spine | None,
    categories: Sequence[Category],
    conventional: Plan,
) -> Plan:
    """The plan with the expected errors of its levels, and what the spine does to everything."""
    effects = entity_effects(plan, hierarchy, spine, categories, conventional)
    errors = []
    for level, effect in enumerate(e for e in effects if e.is_level):
        shown = effect.error_after[~hierarchy.passes_through[level]]
        least, median, most = (float(f(shown)) for f in (np.min, np.median, np.max))
        errors.append(ExpectedError(plan.levels[level], shown.size, least, median, most))
    return replace(plan, forecast=Forecast(tuple(errors), tuple(e.means() for e in effects)))


def entity_effects(
    plan: Plan,
    hierarchy: Hierarchy,
    spine: Spine | None,
    categories: Sequence[Category],
    conventional: Plan,
) -> list[EntityEffects]:
    """Published levels, root first, then the categories."""
    from trellis.numerics.trees.area_errors import AreaErrors  # compiles
    from trellis.numerics.trees.areas import entity_distances

    before, after = AreaErrors.on(conventional, hierarchy), AreaErrors.on(plan, hierarchy, spine)
    levels = [Category.of_level(hierarchy, level) for level in range(hierarchy.n_levels)]
    effects = []
    for number, category in enumerate([*levels, *categories]):
        carried = category if spine is None else category.carried(spine.leaf_order)
        near = entity_distances(after.tree, carried)
        far = near if spine is None else entity_distances(hierarchy, category)
        errors = after.of(carried)
        effects.append(
            EntityEffects(
                category,
                number < len(levels),
                far,
                near,
                errors if spine is None else before.of(category),
                errors,
            )
        )
    return effects
