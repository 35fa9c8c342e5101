r"""From zero-concentrated DP to (epsilon, delta): what the exact curve is compared with.

Two conversions of rho-zCDP. Bun and Steinke (TCC 2016, arXiv:1605.02065), as the Census Bureau:

    eps = rho + 2 sqrt(rho log(1/delta)).

Canonne, Kamath and Steinke (NeurIPS 2020, arXiv:2004.00010), tighter: for every t > 0 (their
alpha is 1 + t)

    log delta = t ((1 + t) rho - eps) + t log t - (1 + t) log(1 + t).

The best t has log(1/delta) = t^2 rho + log(1 + t) and eps = (1 + 2t) rho + log(t / (1 + t)): each
of the two determines t, and any t gives a valid bound, so an inexact root only costs tightness.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray

_UNITS = 64 * UNIT  # rounding of a formula of a dozen operations, relative to its largest term


def zcdp_epsilon(rho: Fraction | float, delta: float) -> float:
    """Bun and Steinke's epsilon, rounded up."""
    cost = float(rho)
    return (cost + 2 * float(np.sqrt(-cost * np.log(delta)))) * (1 + _UNITS)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The rho at which Bun and Steinke's bound gives this epsilon, for comparisons."""
    log_inverse = -np.log(delta)
    return float((epsilon / (np.sqrt(log_inverse + epsilon) + np.sqrt(log_inverse))) ** 2)


def tight_zcdp_epsilons(rho: Fraction | float, deltas: FloatArray) -> FloatArray:
    """Canonne, Kamath and Steinke's epsilons, at least 0 and rounded up."""
    cost = float(rho)
    log_inverse = -np.log(deltas)
    t = _increasing_root(lambda t: t * t * cost + np.log1p(t), log_inverse)
    log_t, log1p_t = np.log(t), np.log1p(t)
    epsilons = (1 + t) * cost + (log_inverse - log1p_t) / t + log_t - log1p_t
    terms = (1 + t) * cost + (log_inverse + log1p_t) / t + np.abs(log_t) + log1p_t
    return np.maximum(epsilons + _UNITS * terms, 0.0)


def tight_zcdp_deltas(rho: Fraction | float, epsilons: FloatArray) -> FloatArray:
    """Canonne, Kamath and Steinke's deltas, at most 1 and rounded up, also where they underflow."""
    cost = float(rho)
    t = _increasing_root(lambda t: (1 + 2 * t) * cost + np.log(t) - np.log1p(t), epsilons)
    log_t, log1p_t = np.log(t), np.log1p(t)
    log_delta = t * ((1 + t) * cost - epsilons) + t * log_t - (1 + t) * log1p_t
    terms = t * ((1 + t) * cost + epsilons) + t * np.abs(log_t) + (1 + t) * log1p_t
    with np.errstate(under="ignore"):
        deltas = np.exp(np.minimum(log_delta + _UNITS * terms, 0.0))
    return np.maximum(deltas, np.finfo(float).smallest_subnormal)


def _increasing_root(
    function: Callable[[FloatArray], FloatArray], targets: FloatArray
) -> FloatArray:
    """Where an increasing function of t > 0 meets each target, within [1e-300, 1e150]."""
    low, high = np.full_like(targets, -690.0), np.full_like(targets, 345.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = function(np.exp(middle)) < targets
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp(high)
