r"""How many standard errors an interval reaches.

    Phi^{-1}((1 + c) / 2)                      for Gaussian noise,
    max(that, -log(1 - c) / sqrt(2))           for Laplace noise,

the second being the quantile of a single Laplace variable of variance one: an estimate that rests
on one measurement has its tails, one that averages many is closer to normal.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist


def standard_errors_within(confidence: Fraction, *, laplace: bool) -> float:
    """Half the width of an interval of this confidence, in standard errors."""
    normal = NormalDist().inv_cdf(float((1 + confidence) / 2))
    if not laplace:
        return normal
    return max(normal, -math.log1p(-float(confidence)) / math.sqrt(2))
