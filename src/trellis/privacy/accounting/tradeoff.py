r"""The trade-off function: how well any test can tell two neighbours apart.

f(alpha) is the least rate of missed detections of a test with false-alarm rate alpha. It is
the conjugate of the curve (Dong, Roth and Su, JRSS B 2022, arXiv:1905.02383),

    f(alpha) = sup_{eps real} 1 - delta(eps) - e^eps alpha,

a concave function of x = e^eps. For eps = -y < 0 the symmetry of our laws turns the term into
e^{-y} (1 - delta(y) - alpha), without cancellation. Any eps gives a lower bound, the safe side;
three neighbouring ones give an upper bound by concavity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trellis.privacy.accounting.curves import Bounds
from trellis.privacy.accounting.losses import UNIT, FloatArray

_GOLDEN = (np.sqrt(5.0) - 1) / 2
_NARROWINGS = 70
_LARGEST = 700.0  # e^700 is still a float
_SPACINGS = 10.0 ** -np.arange(1, 12)


def tradeoff_bounds(
    delta_bounds: Callable[[FloatArray], Bounds], alphas: FloatArray, reach: FloatArray
) -> Bounds:
    """Bounds of f at each alpha in (0, 1); the best eps lies between -`reach` and log(1/alpha)."""

    def terms(eps: FloatArray) -> Bounds:
        lower, upper = delta_bounds(np.abs(eps))
        shrink = np.exp(np.minimum(eps, 0.0))
        # For eps <= 0 the alarm is alpha itself, and 1 - alpha has no error worth the name.
        alarm = np.exp(np.clip(eps, 0.0, _LARGEST)) * alphas
        quiet = 1 - alarm
        error = 4 * UNIT * (np.abs(quiet) + upper + np.where(eps > 0, alarm, 0.0))
        return shrink * (quiet - upper - error), shrink * (quiet - lower + error)

    best = _maximiser(lambda eps: terms(eps)[0], -reach, np.minimum(-np.log(alphas), _LARGEST - 1))
    low, high = terms(best)
    upper = 1 - alphas * (1 - UNIT)
    for spacing in _SPACINGS:
        left, right = terms(best - spacing), terms(best + spacing)
        enclosed = (left[1] <= low) & (right[1] <= low)
        # Beyond the middle point a concave function stays below the line through two points.
        rise = np.maximum(np.exp(spacing) * (high - left[0]), high - right[0])
        upper = np.where(enclosed, np.minimum(upper, high + rise * (1 + 8 * UNIT)), upper)
    return np.maximum(low, 0.0), np.maximum(upper, np.finfo(float).tiny)


def _maximiser(
    function: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> FloatArray:
    """Golden-section search for the maximum of a function that rises, then falls."""
    a, b = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    at_a, at_b = function(a), function(b)
    for _ in range(_NARROWINGS):
        falls = at_a > at_b
        left, right = np.where(falls, left, a), np.where(falls, b, right)
        new = np.where(falls, right - _GOLDEN * (right - left), left + _GOLDEN * (right - left))
        at_new = function(new)
        a, b = np.where(falls, new, b), np.where(falls, a, new)
        at_a, at_b = np.where(falls, at_new, at_b), np.where(falls, at_a, at_new)
    return np.where(at_a > at_b, a, b)
