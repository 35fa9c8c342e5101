"""Consistent estimates of every cell of every area."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Arrays of areas x cells, one per level, root first.

    `counts` are published: int64, or float64 from a real-valued method. Children add up to their
    parents in every cell, unless `adds_up` is False: a relaxed method. `centre` is the best linear
    unbiased estimate and `std_error` its standard error; both are None where the method has no
    variances. An interval lies around `centre`, not around the published count.
    """

    hierarchy: Hierarchy
    schema: Schema
    counts: tuple[NDArray[np.int64] | Floats, ...]
    centre: tuple[Floats, ...] | None = None
    std_error: tuple[Floats, ...] | None = None
    adds_up: bool = True

    def __post_init__(self) -> None:
        if (self.centre is None) != (self.std_error is None):
            raise StructureError("Centre and standard error come together.")
        for arrays in filter(None, (self.counts, self.centre, self.std_error)):
            if [a.shape for a in arrays] != [
                (n, self.schema.n_cells) for n in self.hierarchy.sizes
            ]:
                raise StructureError("Estimates need one row per area and one column per cell.")
            if not all(np.isfinite(a).all() for a in arrays):
                raise StructureError("Estimates must be finite numbers.")
        kinds = {a.dtype for a in self.counts}
        if kinds not in ({np.dtype(np.int64)}, {np.dtype(np.float64)}):
            raise StructureError("Counts must be int64 on all levels, or float64 on all levels.")
        for level in range(self.hierarchy.n_levels - 1 if self.adds_up else 0):
            sums = self.hierarchy.sum_children(level, self.counts[level + 1])
            if not self._equal(sums, self.counts[level]):
                raise StructureError(
                    f"Estimates of level {self.hierarchy.level_names[level + 1]!r} "
                    "do not add up to their parents."
                )
        if self.is_whole and any((c < 0).any() for c in self.counts):
            raise StructureError("Published counts must not be negative.")

    @property
    def is_whole(self) -> bool:
        return self.counts[0].dtype == np.int64

    def _equal(self, sums: NDArray, parents: NDArray) -> bool:
        if self.is_whole:
            return bool((sums == parents).all())
        return bool(np.allclose(sums, parents, rtol=1e-9, atol=1e-6))
