"""Noisy answers and exact invariants: all that is kept of the confidential counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """One array per planned query, in the plan's order: areas of the level x numbers per area.

    The noise parameters are the plan's; invariants are here too, with variance 0.
    """

    plan: Plan
    hierarchy: Hierarchy
    values: tuple[NDArray[np.int64], ...]
    spine: Spine | None = None  # then `hierarchy` is its tree

    def __post_init__(self) -> None:
        plan, hierarchy = self.plan, self.hierarchy
        if (plan.tree_levels, plan.tree_sizes) != (hierarchy.level_names, hierarchy.sizes):
            raise StructureError("The plan was made for another hierarchy.")
        if (plan.spine is None) != (self.spine is None):
            raise StructureError("A plan with a spine is measured on it; other plans have none.")
        if plan.spine is not None and self.spine is not None:
            plan.spine.require(self.spine)
        if len(self.values) != len(plan.queries):
            raise StructureError("There must be one array for each planned query.")
        for planned, values in zip(plan.queries, self.values, strict=True):
            shape = (plan.n_nodes(planned), plan.width(planned.query))
            if values.dtype != np.int64 or values.shape != shape:
                raise StructureError(f"{planned.label!r} needs whole numbers of shape {shape}.")

    def answer(
        self, level: str, query: str
    ) -> tuple[NDArray[np.int64], float | NDArray[np.float64]] | None:
        """Values and variance of a query on a level, or None if it was not measured.

        On a spine, variances are those of the nodes: infinity where a node was not measured.
        """
        if self.spine is not None and (found := self._by_class(level, query)) is not None:
            return found
        for planned, values in zip(self.plan.queries, self.values, strict=True):
            if (planned.level, planned.query) == (level, query):
                return values, planned.assumed_variance
        return None

    def _by_class(
        self, level: str, query: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        assert self.spine is not None
        size = self.hierarchy.size(level)
        values = np.zeros((size, self.plan.width(query)), dtype=np.int64)
        variance = np.full(size, np.inf)
        found = False
        for planned, answers in zip(self.plan.queries, self.values, strict=True):
            if (planned.level, planned.query) == (level, query) and planned.share_class is not None:
                rows = self.spine.rows(level, planned.share_class)
                values[rows], variance[rows], found = answers, planned.assumed_variance, True
        return (values, variance) if found else None
