"""Programs (6) and (7) by a general solver, written from the formulas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


def laplace_total(level_counts: Sequence, epsilon: NDArray, weights: Sequence[float]) -> float:
    total = 0.0
    for counts, e, w in zip(level_counts, epsilon, weights, strict=True):
        for n in counts:
            total += w * ((2 - np.exp(-e * n)) / e**2 - n / e * np.exp(-e * n))
    return total


def general_allocate(level_counts: Sequence, total: float, weights: Sequence[float]) -> float:
    """The least weighted error under a budget."""
    n = len(level_counts)
    shares = np.full(n, total / n)
    scale = laplace_total(level_counts, shares, weights)
    found = minimize(
        lambda e: laplace_total(level_counts, e, weights) / scale,
        shares,
        bounds=[(total * 1e-4, total)] * n,
        constraints={"type": "eq", "fun": lambda e: e.sum() / total - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.success or found.status == 8, found.message  # 8: no progress to be made
    return float(found.fun * scale)
