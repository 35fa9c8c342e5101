"""Measurements in the form the estimators take: cells by level, and the exact root total.

An exact total of zero says more than one number: no count is negative, so every cell of the area
and of all areas in it is zero. Best linear estimates take that as measured without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

import numpy as np

from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.results.measurements import Measurements
from trellis.model.tables.queries import DETAILED, TOTAL


def empty_nodes(measurements: Measurements) -> list[Marks]:
    """By level of the measured tree, the nodes that an exact total leaves nothing in."""
    hierarchy, found = measurements.hierarchy, [np.zeros(1, dtype=bool)]
    exact = {
        query.level: values[:, 0]
        for query, values in zip(measurements.plan.queries, measurements.values, strict=True)
        if query.noise is None
    }
    for level, name in enumerate(hierarchy.level_names):
        if level:
            found.append(found[-1][hierarchy.parents(level)])
        if name in exact:
            found[-1] |= exact[name] == 0
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy cells (areas x cells) and one variance per level, or one per node, root first.

    Variance 0 marks exact levels and infinity levels that were not measured. `root_total` is the
    exact sum of the root's cells where it is known besides the noisy cells.
    """

    cells: tuple[Ints, ...]
    variance: tuple[float | Floats, ...]
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

    def with_empty(self, empty: Sequence[Marks]) -> Self:
        """The same where nothing is in the marked nodes, and that is known without noise."""
        if not any(marks.any() for marks in empty):
            return self
        return replace(
            self,
            cells=tuple(
                np.where(marks[:, np.newaxis], 0, cells)
                for cells, marks in zip(self.cells, empty, strict=True)
            ),
            variance=tuple(
                np.where(marks, 0.0, variance)
                for variance, marks in zip(self.variance, empty, strict=True)
            ),
        )
