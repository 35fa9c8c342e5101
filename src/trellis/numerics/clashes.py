"""The smallest sets of linear constraints that contradict each other, by HiGHS (in SciPy)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import vstack

Floats = NDArray[np.float64]

_INFEASIBLE = 2


def clashing_rows(
    matrix: Any, lower: Floats, upper: Floats, candidates: Sequence[int]
) -> list[int]:
    """Rows of lower <= A x <= upper, x >= 0, that cannot hold together; none if all can.

    The answer is minimal: without any one of its rows the rest can be kept (deletion filter;
    Chinneck and Dravnieks, ORSA Journal on Computing 1991).
    """
    needed = list(candidates)
    if _can_hold(matrix, lower, upper, needed):
        return []
    for row in candidates:
        without = [r for r in needed if r != row]
        if without and not _can_hold(matrix, lower, upper, without):
            needed = without
    return needed


def _can_hold(matrix: Any, lower: Floats, upper: Floats, rows: list[int]) -> bool:
    part, low, high = matrix[rows], lower[rows], upper[rows]
    at_most, at_least = np.isfinite(high), low > 0
    if not (at_most | at_least).any():
        return True
    found = linprog(
        np.zeros(part.shape[1]),
        A_ub=vstack([part[at_most], -part[at_least]]),
        b_ub=np.concatenate([high[at_most], -low[at_least]]),
        method="highs",
    )
    return found.status != _INFEASIBLE
