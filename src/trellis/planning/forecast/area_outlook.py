"""What a plan is expected to bring for areas of interest, and for all that a spine is read by.

The levels of a tree without a spine have an outlook of their own (`outlook`), which also knows
other splits of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.plan import Plan
from trellis.model.tables.queries import DETAILED, TOTAL, parse_query
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.planning.allocation.components import components
from trellis.planning.forecast.area_variance import AreaModel, MeasuredTree
from trellis.planning.forecast.outlook import ErrorLine, error_line, has_outlook
from trellis.planning.spine.measured import measured_by_plan


@dataclass(frozen=True, slots=True, eq=False)
class AreaOutlook:
    """Errors of areas as a function of the plan's whole budget, in its own shares."""

    plan: Plan
    model: AreaModel
    total: float

    @classmethod
    def of(
        cls,
        plan: Plan,
        hierarchy: Hierarchy,
        spine: Spine | None,
        categories: Sequence[Category],
    ) -> Self | None:
        """None where there is nothing to add, or where errors are not known beforehand."""
        if not has_outlook(plan) or (spine is None and not categories):
            return None
        noisy = [(query, query.noise) for query in plan.queries if query.noise is not None]
        protection, (some, noise) = plan.protection, noisy[0]
        pure = plan.budget.is_pure
        unit = float(protection.l1 if pure else protection.l2_squared / 2)
        if spine is None or plan.spine is None:
            shares = {query.level: float(query.share) for query, _ in noisy}
            measured = MeasuredTree.in_shares(hierarchy, shares)
        else:
            measured = measured_by_plan(spine, plan.spine)
        levels = () if spine is None else hierarchy.level_names
        model = AreaModel.of(
            hierarchy, measured, [*levels, *categories], components(plan.schema),
            plan.unprotected_totals, noise.name, unit,
        )  # fmt: skip
        return cls(plan, model, unit / float(noise.parameter * some.share))

    def errors(self) -> list[ErrorLine]:
        """A line for every level of a spine's hierarchy, and every category of areas."""
        queries = [TOTAL] if self.plan.schema.n_cells == 1 else [TOTAL, DETAILED]
        found = []
        for name in self.model.wanted:
            for query in queries:
                variances, areas = self._variances(name, query, 1.0)
                is_area = name not in self.plan.levels
                found.append(error_line(name, query, variances, areas, is_area=is_area))
        return found

    def std_errors(self, part: float = 1.0) -> dict[str, float]:
        """The median standard error of a cell with this part of the budget."""
        return {
            name: error_line(name, DETAILED, *self._variances(name, DETAILED, part)).median
            for name in self.model.wanted
        }

    def root_mean_squares(self) -> dict[str, float]:
        """The root of the mean variance of a cell."""
        found = {}
        for name in self.model.wanted:
            variances, areas = self._variances(name, DETAILED, 1.0)
            found[name] = float(np.average(variances, weights=areas)) ** 0.5
        return found

    def _variances(
        self, name: str, query: str, part: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        solved = self.model.solve(np.array([part * self.total]))
        asked = parse_query(self.plan.schema, query)
        return self.model.of_query(solved, name, asked), self.model.wanted[name].areas
