"""Intervals around the best linear unbiased estimates.

An interval is centre +- f * std_error; `model.plans.confidence` has the factor f. The ends
are rounded to the nearest whole numbers, moved to the nearest ones that the facts about the records
allow (no count is negative; exact totals and bounds may say more), and widened to contain the
published count. The truth keeps the facts, so moving the ends never loses it.

A true count n is whole, so it lies between rounded ends if and only if |n - centre| <= h + 1/2 with
h = f * std_error. The half is the continuity correction: an estimate that rests on one measurement
moves in whole steps, and for such noise P[|Z| <= k] is close to that of a continuous variable
within k + 1/2. Rounding inwards would cover too little there; rounding outwards adds a whole unit,
and on small areas covers 99 % where 90 % was asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.confidence import standard_errors_within
from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import ANYTHING
from trellis.model.tables.carried_bounds import Range
from trellis.privacy.mechanisms import DiscreteLaplace

_SLACK = 1e-9
"""Rounding errors of whole counts must not widen an interval by one."""


def interval_factor(plan: Plan) -> float:
    """Half the width of an interval, in standard errors."""
    laplace = any(isinstance(query.noise, DiscreteLaplace) for query in plan.queries)
    return standard_errors_within(plan.confidence, laplace=laplace)


def interval(
    counts: NDArray,
    centre: NDArray[np.float64],
    std_error: NDArray[np.float64],
    factor: float,
    allowed: Range = ANYTHING,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole lower and upper ends; `allowed` is what the facts leave, areas x cells or x 1."""
    lower = np.clip(np.ceil(centre - factor * std_error - 0.5), allowed.lower, allowed.upper)
    upper = np.clip(np.floor(centre + factor * std_error + 0.5), allowed.lower, allowed.upper)
    return (
        np.minimum(lower, np.floor(counts + _SLACK)).astype(np.int64),
        np.maximum(upper, np.ceil(counts - _SLACK)).astype(np.int64),
    )
