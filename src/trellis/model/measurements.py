"""Noisy answers and exact invariants: all that is kept of the confidential counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """One array per planned query, in the plan's order: areas of the level x numbers per area.

    The noise parameters are the plan's; invariants are here too, with variance 0.
    """

    plan: Plan
    hierarchy: Hierarchy
    values: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        plan, hierarchy = self.plan, self.hierarchy
        if (plan.levels, plan.sizes) != (hierarchy.level_names, hierarchy.sizes):
            raise StructureError("The plan was made for another hierarchy.")
        if len(self.values) != len(plan.queries):
            raise StructureError("There must be one array for each planned query.")
        for planned, values in zip(plan.queries, self.values, strict=True):
            shape = (hierarchy.size(planned.level), plan.width(planned.query))
            if values.dtype != np.int64 or values.shape != shape:
                raise StructureError(f"{planned.label!r} needs whole numbers of shape {shape}.")

    def answer(self, level: str, query: str) -> tuple[NDArray[np.int64], float] | None:
        """Values and variance of a query on a level, or None if it was not measured."""
        for planned, values in zip(self.plan.queries, self.values, strict=True):
            if (planned.level, planned.query) == (level, query):
                return values, planned.variance
        return None
