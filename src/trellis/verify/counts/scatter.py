"""Whether measurements scatter at least as much as their noise must. Yields what is wrong.

A measured area and its measured children differ by noise alone, so the square of the difference is
on average the sum of the variances. For n independent squares x of mean 1, whatever their law
(Maurer 2003), and for those of normal noise (r is their mean, Chernoff):

    P(sum of x <= n - s)  <=  exp(-s^2 / (2 sum of E[x^2]))
    P(mean of x <= r)     <=  exp(-n (r - 1 - log r) / 2)

So less scatter than that has a cause: the noise was less than stated, and so is the protection.
Nothing is said about noise that somebody chose with care.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from trellis.verify.counts.measured_tree import plain_tree
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import noise_variance

MOST_LOG = 32.0
"""An honest release is suspected with probability exp(-32) for each pair of levels: 1 in 10^13."""

LEAST_NORMAL = 1
"""Sigma squared of discrete Gaussian noise whose sums are taken for normal."""


def scatter(run: RunFiles) -> Iterator[str]:
    """Measurements of areas differ from those of their children by as much noise as was stated."""
    tree, noise = plain_tree(run), _by_level(run)
    for index, family in enumerate(tree.families):
        above, below = tree.names[index : index + 2]
        if above not in noise or below not in noise:
            continue
        gap = tree.values[index] - family.sum(tree.values[index + 1])
        variance = tree.variance[index] + family.sum(tree.variance[index + 1])
        if not is_wide(gap, variance, noise[above] + noise[below]):
            yield f"measurements of {above} and {below} differ by less than their noise must"


def _by_level(run: RunFiles) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for q in run.plan["queries"]:
        if q["noise"] is not None:
            found.setdefault(q["level"], []).append(q["noise"])
    return found


def is_wide(gap: np.ndarray, variance: np.ndarray, noises: list[dict[str, Any]]) -> bool:
    """Whether the differences can be those of such noise."""
    fits = np.isfinite(variance) & (variance > 0)
    squares = gap[fits] ** 2 / variance[fits][:, np.newaxis]
    n, missing = squares.size, squares.size - float(squares.sum())
    if missing <= 0:
        return True
    # A sum of several noises has no more kurtosis than the worst, if that is at least 3.
    log_chance = -(missing**2) / (2 * n * max(map(_kurtosis, noises)))
    if all(map(_is_normal, noises)):
        # Whole numbers cannot be nearer to one another than this.
        mean = max(1 - missing / n, 1 / (1 + float(variance[fits].min())))
        log_chance = min(log_chance, -n * (mean - 1 - math.log(mean)) / 2)
    return log_chance >= -MOST_LOG


def _is_normal(noise: dict[str, Any]) -> bool:
    """Whether whole numbers do not show.

    A difference has two such noises at least. The bound is then off by a factor of at most
    1 + 4e-6 for each, and far less where the squares are near what is expected.
    """
    return noise["law"] == "discrete_gaussian" and Fraction(noise["parameter"]) >= LEAST_NORMAL


def _kurtosis(noise: dict[str, Any]) -> float:
    """E[x^4] / E[x^2]^2, or 3 if that is less."""
    if noise["law"] == "discrete_laplace":
        return 6 + 1 / noise_variance(noise)
    sigma2 = float(Fraction(noise["parameter"]))
    if sigma2 > 20:
        return 3.0 + 1e-6
    z = np.arange(1, 200.0)
    fourth = float(2 * (z**4 * np.exp(-(z**2) / (2 * sigma2))).sum())
    whole = 1 + float(2 * np.exp(-(z**2) / (2 * sigma2)).sum())
    variance = noise_variance(noise)
    return max(3.0, fourth / whole / variance**2) if variance else math.inf
