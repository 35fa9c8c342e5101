"""Isotonic regression with checked input."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.model.arrays import Floats
from trellis.numerics.group_sizes.isotonic import isotonic_rows

LARGEST_VALUE = 1e100
"""Beyond it sums of squares could overflow."""


def isotonic(values: ArrayLike) -> Floats:
    """The non-decreasing sequence nearest to `values` in least squares.

    `values` is one sequence, or an array of rows, each of which is fitted by itself.
    """
    try:
        given = np.asarray(values)
    except ValueError:  # rows of unequal length
        given = np.empty((), dtype=object)
    if given.ndim not in (1, 2) or given.dtype.kind not in "iuf":
        raise StructureError("Isotonic regression takes a sequence of numbers, or rows of them.")
    rows = np.ascontiguousarray(np.atleast_2d(given), dtype=np.float64)
    if not np.all(np.abs(rows) <= LARGEST_VALUE):  # also false for NaN
        raise StructureError("Isotonic regression was given NaN, infinity or a number over 1e100.")
    out = np.empty_like(rows)
    isotonic_rows(rows, out)
    return out.reshape(given.shape)
