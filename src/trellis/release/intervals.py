r"""Intervals around the best linear unbiased estimates.

An interval of confidence c is centre +- f * std_error, with the factor

    f = Phi^{-1}((1 + c) / 2)                           for Gaussian noise,
    f = max(that, -log(1 - c) / sqrt(2))                for Laplace noise,

the second being the quantile of a single Laplace variable of variance one: an estimate that rests
on one measurement has its tails, one that averages many is closer to normal. The ends are rounded
to the nearest whole numbers, floored at zero, and widened to contain the published count.

A true count n is whole, so it lies between rounded ends if and only if |n - centre| <= h + 1/2 with
h = f * std_error. The half is the continuity correction: an estimate that rests on one measurement
moves in whole steps, and for such noise P[|Z| <= k] is close to that of a continuous variable
within k + 1/2. Rounding inwards would cover too little there; rounding outwards adds a whole unit,
and on small areas covers 99 % where 90 % was asked for.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from trellis.model.plan import Plan
from trellis.privacy.mechanisms import DiscreteLaplace

_SLACK = 1e-9
"""Rounding errors of whole counts must not widen an interval by one."""


def interval_factor(plan: Plan) -> float:
    """Half the width of an interval, in standard errors."""
    return _factor(plan.confidence, any(isinstance(q.noise, DiscreteLaplace) for q in plan.queries))


def _factor(confidence: Fraction, laplace: bool) -> float:
    normal = NormalDist().inv_cdf(float((1 + confidence) / 2))
    if not laplace:
        return normal
    return max(normal, -math.log1p(-float(confidence)) / math.sqrt(2))


def interval(
    counts: NDArray, centre: NDArray[np.float64], std_error: NDArray[np.float64], factor: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole lower and upper ends."""
    lower = np.maximum(np.ceil(centre - factor * std_error - 0.5), 0)
    upper = np.maximum(np.floor(centre + factor * std_error + 0.5), 0)
    return (
        np.minimum(lower, np.floor(counts + _SLACK)).astype(np.int64),
        np.maximum(upper, np.ceil(counts - _SLACK)).astype(np.int64),
    )
