"""Moments of clipped noise from the definition: sums and integrals in high precision."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import exp, inf, mp, mpf, pi, quad, sqrt


def clipped_moments(kind: str, parameter: float, count: int) -> tuple[float, float]:
    """Bias and mean squared error of max(0, N + Z) - N = max(-N, Z)."""
    with mp.workdps(40):
        law = mpf(parameter)
        # E[Z] = 0 is subtracted under the sum: what clipping adds would drown in it otherwise.
        mean = _expectation(kind, law, count, lambda z: mpf(0) if z > -count else -count - z)
        square = _expectation(kind, law, count, lambda z: (z if z > -count else mpf(-count)) ** 2)
        return float(mean), float(square)


def _expectation(kind: str, law: mpf, count: int, function: Callable) -> mpf:
    if kind.startswith("discrete"):
        weight = (lambda z: exp(-abs(z) / law)) if "laplace" in kind else (
            lambda z: exp(-z * z / (2 * law))
        )  # fmt: skip
        reach = int(100 * law if "laplace" in kind else 14 * sqrt(law)) + 2
        points = range(-reach, reach + 1)
        total = sum((weight(mpf(z)) for z in points), mpf(0))
        return sum((weight(mpf(z)) * function(mpf(z)) for z in points), mpf(0)) / total
    if kind == "laplace":
        density, width = (lambda z: exp(-abs(z) / law) / (2 * law)), law
    else:
        density, width = (lambda z: exp(-z * z / (2 * law)) / sqrt(2 * pi * law)), sqrt(law)
    cuts = sorted({-inf, mpf(-count), *(k * width for k in range(-60, 61, 4)), mpf(0), inf})
    return quad(lambda z: density(z) * function(z), cuts)
