"""Counts that are not negative and keep the sum of each cell: the nearest ones."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER

MOST_NEWTON_STEPS = 1000


@njit(nogil=True, cache=True, fastmath=REORDER)
def threshold(row: Any, total: float, start: float) -> float:
    """The t at which the positive parts of row - t add up to total > 0, by Newton's method.

    The sum is convex and falls in t, so that after one step t only rises, and the entries above it
    only get fewer: once they do not, the step was exact (or rounding would go round in circles).
    """
    t = start
    above = 0.0
    for step in range(MOST_NEWTON_STEPS):
        count = 0.0
        surplus = 0.0
        for value in row:
            d = value - t
            surplus += d if d > 0 else 0.0
            count += 1.0 if d > 0 else 0.0
        if count > 0 and (count == above or (step > 2 and count > above)):
            break
        above = count
        if count == 0:
            t = row.max() - total  # to the left of the solution
        else:
            t += (surplus - total) / count
    return t


@njit(nogil=True, cache=True, fastmath=REORDER)
def projected_step(x, gradient, inverse, parent, blocked, thresholds, row, j):
    """Row j of the projection of x - inverse * gradient, left in `row`; returns its threshold."""
    for c in range(row.size):
        row[c] = x[j, c] - inverse * gradient[j, c]
    if blocked.size:
        for c in range(row.size):
            if blocked[j, c]:
                row[c] = -inf
    t = 0.0 if parent[j] == inf else threshold(row, parent[j], thresholds[j])
    thresholds[j] = t
    for c in range(row.size):
        d = row[c] - t
        row[c] = d if d > 0 else 0.0
    return t


@njit(nogil=True, cache=True)
def project_cells(x, parent, blocked):
    """Replace each cell's row by the nearest one that is not negative and adds up."""
    nothing = np.zeros(x.shape)
    thresholds = np.zeros(x.shape[0])
    row = np.empty(x.shape[1])
    for j in range(x.shape[0]):
        projected_step(x, nothing, 0.0, parent, blocked, thresholds, row, j)
        x[j] = row
