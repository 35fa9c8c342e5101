r"""What targets cost at the margin: what the least budget falls by when they are relaxed.

With budgets x and the falls F_ei = -d log Var_e / d log x_i of the entries e that are at their
limits, multipliers m of the least budget fulfil

    sum_e m_e F_ei = x_i   for every slot i,   m >= 0        (Karush, Kuhn and Tucker).

Where targets bind at the same place, many m do. The least budget is convex in the logarithms of
the limits, and falls at the least rate that any m allows: to relax one of two equal targets saves
nothing, to relax both saves something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_OPTIMAL = 0.01
"""Budgets this close to the conditions of an optimum count as one: shares were rounded."""
_SLACK = 1e-7
"""Parts of the budget by which conditions may be missed, so that rounding leaves a solution."""
_NOTHING = 1e-6
"""Parts of the budget that count as nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """By target whether it binds, and what one unit more saves if it `alone` is relaxed."""

    binds: Bools
    alone: Floats

    @classmethod
    def none(cls, n_targets: int) -> Self:
        return cls(np.zeros(n_targets, dtype=np.bool_), np.zeros(n_targets))


def margins(
    budgets: Floats, falls: Floats, target_of: Ints, worst: Bools, rates: Floats
) -> Margins:
    """From the entries at their limits, with the target of each.

    `worst` are the targets that are missed first when all budgets shrink together; `rates` are the
    logarithms of limits that a unit of `within` is worth.
    """
    total = budgets.sum()
    start, gap = nnls(falls.T, budgets)
    if budgets.size == 1 or gap > _OPTIMAL * np.linalg.norm(budgets):
        return _in_fixed_shares(total, falls, target_of, worst, rates)
    least, most = np.zeros(rates.size), np.zeros(rates.size)
    sums = falls.T @ start / total
    rows, bounds = np.vstack([falls.T, -falls.T]), np.concatenate([sums, -sums]) + _SLACK
    for target in np.unique(target_of):
        chosen = (target_of == target).astype(np.float64)
        low, high = (linprog(side * chosen, rows, bounds).fun for side in (1, -1))
        # A failure of the solver leaves the multipliers that were found first.
        least[target] = chosen @ start / total if low is None else low
        most[target] = chosen @ start / total if high is None else -high
    return Margins(most > _NOTHING, np.where(least > _NOTHING, total * least * rates, 0.0))


def _in_fixed_shares(
    total: float, falls: Floats, target_of: Ints, worst: Bools, rates: Floats
) -> Margins:
    """All budgets move together; the worst target decides, if it is the only one."""
    alone = np.zeros(rates.size)
    if worst.sum() == 1:
        (target,) = np.flatnonzero(worst)
        alone[target] = total * rates[target] / falls[target_of == target][0].sum()
    return Margins(worst, alone)
