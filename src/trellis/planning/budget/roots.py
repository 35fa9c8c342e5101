"""Roots of falling functions."""

from __future__ import annotations

from collections.abc import Callable

from scipy.optimize import root_scalar

from trellis.errors import InputError

_FARTHEST = 1e3
"""Logarithms of budgets are not searched farther than this."""


def falling_root(falling: Callable[[float], float], guess: float) -> float:
    """The root of a falling function, bracketed from a guess by steps that double."""
    value = falling(guess)
    if value == 0:
        return guess
    direction, near, step = (1 if value > 0 else -1), guess, 0.25
    while step < _FARTHEST:
        far = near + direction * step
        if falling(far) * direction <= 0:
            ends = (min(near, far), max(near, far))
            return float(root_scalar(falling, bracket=ends, xtol=1e-13, method="brentq").root)
        near, step = far, 2 * step
    raise InputError(
        "No budget can do this: the counts, the weights or the error asked for are extreme."
    )
