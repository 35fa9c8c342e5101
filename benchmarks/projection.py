"""Whole-number projection of families: exactness, and speed beside cvxpy with Clarabel.

Run `python benchmarks/projection.py`. cvxpy and Clarabel are in the extra `bench`. They solve the
real-valued problem only, to the solver's default accuracy; whole numbers would take them longer.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from trellis.estimate import project_l2_families

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the exact twin
from oracles.projection import least_objective, objective

CHECKED_FAMILIES = 5000
OUR_NODES = 2_000_000
THEIR_FAMILIES = 100
REPETITIONS = 5
FAMILY_SIZES = (3, 15, 67, 1000)
"""Three per tract, 15 per county and 67 per block group occur in the demo's tree."""

TARGET = 1500


@dataclass(frozen=True)
class Families:
    """Noisy children of equally large families and the totals they must add up to."""

    x: NDArray[np.int64]
    start: NDArray[np.int64]
    totals: NDArray[np.int64]
    weights: NDArray[np.float64]


def skewed_families(size: int, n_families: int, seed: int = 0) -> Families:
    rng = np.random.default_rng(seed)
    start = np.arange(0, n_families * size + 1, size)
    truth = np.floor(rng.lognormal(2, 1.2, start[-1])) * (rng.random(start[-1]) < 0.6)
    noise = np.rint(rng.normal(0, 5, truth.size))
    totals = np.add.reduceat(truth, start[:-1])
    weights = rng.uniform(0.1, 2, truth.size)
    return Families((truth + noise).astype(np.int64), start, totals.astype(np.int64), weights)


# -- exactness ------------------------------------------------------------------------------------


def mismatches(weighted: bool) -> int:
    """Families whose objective is not the least of all ways to share the total."""
    rng = np.random.default_rng(2026)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 7, CHECKED_FAMILIES))])
    x = rng.integers(-4, 7, start[-1]).astype(np.float64)
    weights = None
    if weighted:
        x += rng.integers(0, 4, x.size) / 4
        weights = rng.integers(1, 9, x.size) / 4
    totals = rng.integers(0, 10, CHECKED_FAMILIES)
    y = project_l2_families(x, start, totals, weights)
    wrong = 0
    for lo, hi, total in zip(start[:-1], start[1:], totals, strict=True):
        w = None if weights is None else weights[lo:hi]
        reached = objective(y[lo:hi], x[lo:hi], w)
        feasible = y[lo:hi].sum() == total and y[lo:hi].min() >= 0
        wrong += not feasible or reached != least_objective(x[lo:hi], int(total), w)
    return wrong


# -- speed ----------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """The median of the repetitions, after one call to compile."""
    work()
    times = []
    for _ in range(REPETITIONS):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return median(times)


def our_nodes_per_second(size: int, weighted: bool) -> float:
    families = skewed_families(size, OUR_NODES // size)
    weights = families.weights if weighted else None

    def work() -> None:
        project_l2_families(families.x, families.start, families.totals, weights, workers=1)

    return families.x.size / seconds(work)


def cvxpy_nodes_per_second(size: int, weighted: bool) -> float:
    """One parametrised problem, compiled once: the fastest way through cvxpy."""
    import cvxpy as cp

    families = skewed_families(size, THEIR_FAMILIES)
    y, x, root, total = (
        cp.Variable(size, nonneg=True),
        cp.Parameter(size),
        cp.Parameter(size, nonneg=True),
        cp.Parameter(),
    )
    scaled = cp.multiply(root, y) - x  # x times the root of the weight keeps the problem DPP
    problem = cp.Problem(cp.Minimize(cp.sum_squares(scaled)), [cp.sum(y) == total])

    def work() -> None:
        for family in range(THEIR_FAMILIES):
            children = slice(families.start[family], families.start[family + 1])
            root.value = np.sqrt(families.weights[children]) if weighted else np.ones(size)
            x.value = root.value * families.x[children]
            total.value = families.totals[family]
            problem.solve(solver=cp.CLARABEL)

    return families.x[: size * THEIR_FAMILIES].size / seconds(work)


def main() -> None:
    has_cvxpy = all(find_spec(name) for name in ("cvxpy", "clarabel"))
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    for weighted in (False, True):
        label = "weighted, real estimates" if weighted else "equal weights, whole estimates"
        wrong = mismatches(weighted)
        print(f"{label}: {wrong} mismatches with brute force in {CHECKED_FAMILIES:,} families")
    print(f"median of {REPETITIONS} runs on one core, {OUR_NODES:,} nodes a run, checks included")
    if has_cvxpy:
        print(f"cvxpy + Clarabel: {THEIR_FAMILIES} families a run; target ratio {TARGET:,}")
    else:
        print("cvxpy or Clarabel is not installed (extra `bench`): no comparison in this run")
    print(f"\n{'children':>8}  {'weights':<9}{'Trellis, nodes/s':>18}{'cvxpy, nodes/s':>18}{'ratio':>10}")
    for size in FAMILY_SIZES:
        for weighted in (False, True):
            ours = our_nodes_per_second(size, weighted)
            row = f"{size:>8}  {'any' if weighted else 'equal':<9}{ours:>18,.0f}"
            if has_cvxpy:
                theirs = cvxpy_nodes_per_second(size, weighted)
                row += f"{theirs:>18,.0f}{ours / theirs:>9,.0f}x"
            print(row, flush=True)


if __name__ == "__main__":
    main()
