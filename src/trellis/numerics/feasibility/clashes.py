"""The smallest sets of linear constraints that contradict each other, by HiGHS (in SciPy)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, sparse

from trellis.model.arrays import Floats

_INFEASIBLE = 2


def clashing_rows(
    matrix: Any, lower: Floats, upper: Floats, candidates: Sequence[int]
) -> list[int]:
    """Candidates among the rows of lower <= A x <= upper, x >= 0, that cannot hold together.

    None if all can. Rows that are not candidates are equations, and always hold. The answer is
    minimal: without any one of its rows the rest can be kept (deletion filter; Chinneck and
    Dravnieks, ORSA Journal on Computing 1991). It is looked for among the rows of a proof: those
    with a price where candidates may be missed at a cost (elastic filter, ibid.).
    """
    always = np.setdiff1d(np.arange(lower.size), candidates).tolist()

    def can_hold(rows: list[int]) -> bool:
        return _can_hold(matrix, lower, upper, always + rows)

    if can_hold(list(candidates)):
        return []
    needed = _proof(matrix, lower, upper, always, list(candidates))
    if can_hold(needed):  # the proof was lost in rounding errors
        needed = list(candidates)
    for row in list(needed):
        without = [r for r in needed if r != row]
        if not can_hold(without):
            needed = without
    return needed


def _can_hold(matrix: Any, lower: Floats, upper: Floats, rows: list[int]) -> bool:
    if not rows or (lower[rows] > upper[rows]).any():
        return not rows
    found = optimize.milp(
        np.zeros(matrix.shape[1]),
        constraints=optimize.LinearConstraint(matrix[rows], lower[rows], upper[rows]),  # type: ignore[arg-type]
    )
    return found.status != _INFEASIBLE


def _proof(
    matrix: Any, lower: Floats, upper: Floats, always: list[int], candidates: list[int]
) -> list[int]:
    """Candidates with a price in the program that misses them by as little as possible in sum."""
    part = matrix[candidates]
    at_least, at_most = np.isfinite(lower[candidates]), np.isfinite(upper[candidates])
    signed = sparse.vstack([-part[at_least], part[at_most]])
    one_each: Any = sparse.eye_array(len(candidates), format="csr")
    missed = -sparse.vstack([one_each[at_least], one_each[at_most]])
    exact = matrix[always]
    found = optimize.linprog(
        np.concatenate([np.zeros(matrix.shape[1]), np.ones(len(candidates))]),
        A_ub=sparse.hstack([signed, missed]),
        b_ub=np.concatenate([-lower[candidates][at_least], upper[candidates][at_most]]),
        A_eq=sparse.hstack([exact, sparse.csr_array((len(always), len(candidates)))]),
        b_eq=lower[always],
        method="highs",
    )
    if found.ineqlin is None:
        return candidates
    row = np.concatenate([np.flatnonzero(at_least), np.flatnonzero(at_most)])
    priced = np.unique(row[np.abs(found.ineqlin.marginals) > 1e-9])
    return [candidates[i] for i in priced]
