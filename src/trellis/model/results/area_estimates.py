"""Estimates of areas of interest: sums of the published leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.areas import Category

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AreaEstimates:
    """Arrays of entities x cells, as `Estimates` has them for the areas of a level."""

    category: Category
    counts: NDArray[np.int64] | Floats
    centre: Floats | None = None
    std_error: Floats | None = None

    def __post_init__(self) -> None:
        if (self.centre is None) != (self.std_error is None):
            raise StructureError("Centre and standard error come together.")
        for array in (self.counts, self.centre, self.std_error):
            if array is None:
                continue
            if array.shape != (self.category.size, self.counts.shape[1]):
                raise StructureError("Estimates need one row per entity.")
            if not np.isfinite(array).all():
                raise StructureError("Estimates must be finite numbers.")
