"""Generalised least squares on a hierarchy, with checked input."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.execution.executor import in_threads, map_kernel
from trellis.model import Hierarchy
from trellis.model.arrays import Floats
from trellis.numerics.trees import gls as tree_gls


def gls(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    variance: Sequence[ArrayLike],
    *,
    workers: int | None = None,
) -> tuple[list[Floats], list[Floats]]:
    """Best linear unbiased estimates of all totals, and their variances, per level, root first.

    `noisy` holds one array per level, of shape (nodes,) or (nodes, columns); `variance` one number
    or one array of shape (nodes,) per level. A variance of 0 marks an exact total and infinity an
    area that is not measured, whose value is not read. The estimates are real, may be negative,
    and children add up to their parents.
    """
    own = tree_gls.node_variances(hierarchy, variance)
    measured = _measurements(hierarchy, noisy, own)
    with in_threads(workers):
        subtree = tree_gls.variances_up(hierarchy, own, map_kernel)
        final_variances = tree_gls.variances_down(hierarchy, subtree, map_kernel)
        estimates = tree_gls.estimates_up(hierarchy, measured, own, subtree, map_kernel)
        return tree_gls.estimates_down(hierarchy, estimates, subtree, map_kernel), final_variances


def _measurements(
    hierarchy: Hierarchy, noisy: Sequence[ArrayLike], variance: Sequence[Floats]
) -> list[Floats]:
    if len(noisy) != hierarchy.n_levels:
        raise StructureError(f"{len(noisy)} arrays of values for {hierarchy.n_levels} levels.")
    levels = [np.asarray(values) for values in noisy]
    columns = levels[0].shape[1:2]
    for level, values in enumerate(levels):
        name, shape = hierarchy.level_names[level], (hierarchy.size(level), *columns)
        if values.shape != shape or values.dtype.kind not in "iuf":
            raise StructureError(f"Values of level {name!r} must be numbers of shape {shape}.")
        if not np.isfinite(values[variance[level] < inf]).all():
            raise StructureError(
                f"A value of level {name!r} is NaN or infinite though its area is measured. "
                "Give the area an infinite variance if it is not."
            )
    return [values.astype(np.float64, copy=False) for values in levels]
