"""Bounds on sums of whole counts, and the value of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from trellis.model.arrays import Ints


class WholeBounds(NamedTuple):
    """Layers of constraints; in a layer a child's row belongs to one constraint at most.

    Cell j lies in row `row_of[layer, j]`, and `constraint[row, child]` is its constraint, or -1.
    """

    row_of: Ints
    constraint: Ints
    lower: Ints
    upper: Ints


@njit(nogil=True, cache=True)
def answers(bounds, y):
    """The value of each constraint."""
    out = np.zeros(bounds.lower.size, np.int64)
    for layer in range(bounds.row_of.shape[0]):
        for j in range(y.shape[0]):
            for c in range(y.shape[1]):
                r = bounds.constraint[bounds.row_of[layer, j], c]
                if r >= 0:
                    out[r] += y[j, c]
    return out
