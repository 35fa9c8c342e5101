"""Measurements in the form the estimators take: cells by level, and the exact root total."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.model.measurements import Measurements
from trellis.model.plan import DETAILED, TOTAL


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy cells (areas x cells) and one variance per level, or one per node, root first.

    Variance 0 marks exact levels and infinity levels that were not measured. `root_total` is the
    exact sum of the root's cells where it is known beside the noisy cells.
    """

    cells: tuple[NDArray[np.int64], ...]
    variance: tuple[float | NDArray[np.float64], ...]
    root_total: int | None

    @classmethod
    def of(cls, measurements: Measurements) -> Self:
        plan, hierarchy = measurements.plan, measurements.hierarchy
        cells, variances = [], []
        for name, size in zip(hierarchy.level_names, hierarchy.sizes, strict=True):
            answer = measurements.answer(name, plan.cell_query)
            nothing = np.zeros((size, plan.width(plan.cell_query)), dtype=np.int64), inf
            values, variance = answer or nothing
            cells.append(values)
            variances.append(variance)
        total = measurements.answer(hierarchy.level_names[0], TOTAL)
        known = total is not None and plan.cell_query == DETAILED
        return cls(tuple(cells), tuple(variances), int(total[0][0, 0]) if known and total else None)
