r"""Continuous Gaussian noise, as a first guess for discrete noise. It bounds nothing by itself.

With mu^2 = 2 rho and a, b = eps / mu -+ mu / 2,

    delta(eps) = Phi(-a) - e^eps Phi(-b) = e^{-a^2 / 2} (erfcx(a / sqrt 2) - erfcx(b / sqrt 2)) / 2.

Reference: Balle and Wang, ICML 2018, arXiv:1805.06530, Theorem 8.
"""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt


def continuous_rho(epsilon: float, delta: float) -> float:
    """The rho at which continuous Gaussian noise has this delta at this epsilon."""
    low, high = log(1e-12), log(1e4)
    for _ in range(60):
        middle = (low + high) / 2
        above = _log_delta(epsilon, exp(middle)) > log(delta)
        low, high = (low, middle) if above else (middle, high)
    return exp(2 * low) / 2


def _log_delta(epsilon: float, mu: float) -> float:
    from scipy.special import erfcx

    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -8:
        return log1p(-1e-15)
    difference = float(erfcx(a / sqrt(2)) - erfcx(b / sqrt(2))) / 2
    return log(difference) - a * a / 2 if difference > 0 else -inf
