"""The smallest sets of linear constraints that contradict each other, by HiGHS (in SciPy)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array


def clashing_rows(
    matrix: csr_array, lower: np.ndarray, upper: np.ndarray, candidates: Sequence[int]
) -> list[int]:
    """Rows of lower <= A x <= upper, x >= 0, that cannot hold together; none if all can.

    The answer is minimal: without any one of its candidates the rest can be kept. Rows that are no
    candidates are always kept (deletion filter; Chinneck and Dravnieks, 1991).
    """
    if _feasible(matrix, lower, upper, list(range(matrix.shape[0]))):
        return []
    fixed = sorted(set(range(matrix.shape[0])) - set(candidates))
    needed = list(candidates)
    for row in candidates:
        without = [r for r in needed if r != row]
        if not _feasible(matrix, lower, upper, fixed + without):
            needed = without
    return needed


def _feasible(matrix: csr_array, lower: np.ndarray, upper: np.ndarray, rows: list[int]) -> bool:
    part, low, high = matrix[rows], lower[rows], upper[rows]
    equal = low == high
    at_most = np.isfinite(high) & ~equal
    at_least = np.isfinite(low) & (low > 0) & ~equal
    found = linprog(
        np.zeros(matrix.shape[1]),
        A_ub=_stacked(part[at_most], -part[at_least]),
        b_ub=np.concatenate([high[at_most], -low[at_least]]) if (at_most | at_least).any() else None,
        A_eq=part[equal] if equal.any() else None,
        b_eq=low[equal] if equal.any() else None,
        method="highs",
    )
    return found.status != 2


def _stacked(first: csr_array, second: csr_array) -> csr_array | None:
    from scipy.sparse import vstack

    both = [part for part in (first, second) if part.shape[0]]
    return vstack(both, format="csr") if both else None
