r"""The trade-off function: how well any test can tell two neighbours apart.

f(alpha) is the least rate of missed detections of a test with false-alarm rate alpha. It is
the conjugate of the curve (Dong, Roth and Su, JRSS B 2022, arXiv:1905.02383),

    f(alpha) = sup_{eps real} 1 - delta(eps) - e^eps alpha,

a concave function of x = e^eps. For eps = -y < 0 the symmetry of our laws turns the term into
e^{-y} (1 - delta(y) - alpha), without cancellation. Any eps gives a lower bound, the safe side;
three neighbouring ones give an upper bound by concavity. So does a test: the event that the loss
exceeds eps has P >= delta(eps) and Q <= e^{-eps} (1 - delta(eps)), so that

    f(alpha) <= 1 - delta(eps)     wherever     e^{-eps} (1 - delta(eps)) <= alpha.

Where delta is nearly 1, terms of many eps differ by less than their rounding. A search that starts
from one interval may then end anywhere; a look at all of it comes first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trellis.privacy.accounting.curves import Bounds
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray

_GOLDEN = (np.sqrt(5.0) - 1) / 2
_NARROWINGS = 64
_LOOKS = 17
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
    upper = np.minimum(1 - alphas * (1 - UNIT), _missed_by_tests(delta_bounds, alphas, best))
    for spacing in _SPACINGS:
        left, right = terms(best - spacing), terms(best + spacing)
        enclosed = (left[1] <= low) & (right[1] <= low)
        # Beyond the middle point a concave function stays below the line through two points.
        rise = np.maximum(np.exp(spacing) * (high - left[0]), high - right[0])
        upper = np.where(enclosed, np.minimum(upper, high + rise * (1 + 8 * UNIT)), upper)
    return np.maximum(low, 0.0), np.maximum(upper, np.finfo(float).tiny)


def _missed_by_tests(
    delta_bounds: Callable[[FloatArray], Bounds], alphas: FloatArray, near: FloatArray
) -> FloatArray:
    """What the tests of the docstring miss, for eps from `near` up to log(1/alpha)."""
    missed = np.ones_like(alphas)
    last = np.minimum(-np.log(alphas) * (1 + 4 * UNIT), _LARGEST)
    for share in np.linspace(0.0, 1.0, _LOOKS):
        eps = np.maximum(near + share * (last - near), 0.0)
        quiet = 1 - delta_bounds(eps)[0] + 4 * UNIT
        allowed = np.exp(-eps) * quiet * (1 + 8 * UNIT) <= alphas
        missed = np.where(allowed, np.minimum(missed, quiet), missed)
    return missed


def _maximiser(
    function: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> FloatArray:
    """Golden-section search for the maximum of a function that rises, then falls.

    It begins around the best of some equally spaced points.
    """
    spaced = np.linspace(left, right, _LOOKS)
    best = np.argmax([function(at) for at in spaced], axis=0)
    each = np.arange(left.size)
    left = spaced[np.maximum(best - 1, 0), each]
    right = spaced[np.minimum(best + 1, _LOOKS - 1), each]
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
