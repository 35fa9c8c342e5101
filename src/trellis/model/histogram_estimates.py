"""Estimates of histograms: sparse counts, and margins of error for published tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.hierarchy import Hierarchy
from trellis.model.schema import Schema
from trellis.model.sparse_counts import SparseCounts

Floats = NDArray[np.float64]
Table = tuple[str, str]
"""A level and a query."""


@dataclass(frozen=True, slots=True, eq=False)
class HistogramEstimates:
    """Whole counts of every level, root first, and the linear estimates of requested marginals.

    `centre[level, query]` (areas x cells of the query) is the best linear unbiased estimate and
    `std_error` its standard error, of the same shape or with one column that all cells share.
    Methods without variances have neither.
    """

    hierarchy: Hierarchy
    schema: Schema
    counts: tuple[SparseCounts, ...]
    centre: Mapping[Table, Floats] = field(default_factory=dict)
    std_error: Mapping[Table, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = [(counts.n_areas, counts.n_cells) for counts in self.counts]
        if sizes != [(n, self.schema.n_cells) for n in self.hierarchy.sizes]:
            raise StructureError("Estimates need one histogram of all cells per area.")
        if self.centre.keys() != self.std_error.keys():
            raise StructureError("Centre and standard error come together.")
        for values in (*self.centre.values(), *self.std_error.values()):
            if not np.isfinite(values).all():
                raise StructureError("Estimates must be finite numbers.")
