"""Estimates of histograms: sparse counts, and margins of error for published tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.wording.guides import USUAL_FIT

Floats = NDArray[np.float64]
Table = tuple[str, str]
"""A level and a query."""

FIT_TOLERANCE = USUAL_FIT
"""Root mean square distance to the best fit, in counts, that families are solved to."""


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """The best linear unbiased estimates of one table, areas x cells, and their standard errors.

    Areas of one class share the row `std_error[class_of[area]]`: errors depend on the shape of
    the tree, not on the counts.
    """

    centre: Floats
    class_of: NDArray[np.int64]
    std_error: Floats

    def __post_init__(self) -> None:
        if not (np.isfinite(self.centre).all() and np.isfinite(self.std_error).all()):
            raise StructureError("Estimates and their standard errors must be finite numbers.")

    def std_errors(self, areas: NDArray[np.int64]) -> Floats:
        """Areas x cells."""
        return self.std_error[self.class_of[areas]]


@dataclass(frozen=True, slots=True, eq=False)
class HistogramEstimates:
    """Whole counts of every level, root first, and margins of the tables that are published.

    Methods without variances have no margins. One without whole counts publishes the centres.
    `distance` bounds how far a family may be from its best fit before it is rounded, as root mean
    square over its counts.
    """

    hierarchy: Hierarchy
    schema: Schema
    counts: tuple[SparseCounts, ...]
    margins: Mapping[Table, Margin] = field(default_factory=dict)
    distance: float = 0.0

    def __post_init__(self) -> None:
        sizes = [(counts.n_areas, counts.n_cells) for counts in self.counts]
        if self.are_whole and sizes != [(n, self.schema.n_cells) for n in self.hierarchy.sizes]:
            raise StructureError("Estimates need one histogram of all cells per area.")

    @property
    def are_whole(self) -> bool:
        return bool(self.counts)

    def published(self, table: Table, first: int, last: int) -> NDArray:
        """What a table says about a run of areas: areas x cells of its query."""
        if not self.are_whole:
            return self.margins[table].centre[first:last]
        level, query = self.hierarchy.index(table[0]), parse_query(self.schema, table[1])
        return self.counts[level].marginal(query.cell_of, query.n_cells, first, last)
