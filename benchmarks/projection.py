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
from itertools import product
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
OUR_REPETITIONS = 5
THEIR_FAMILIES = 50
THEIR_REPETITIONS = 3
FAMILY_SIZES = (3, 15, 67, 1000)
"""On average a tract has 3 block groups, a county 15 tracts and a block group 67 blocks."""

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


def seconds(work: Callable[[], object], repetitions: int) -> float:
    """The median of the repetitions, after one call to compile."""
    work()
    times = []
    for _ in range(repetitions):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return median(times)


def our_nodes_per_second(size: int, weighted: bool) -> float:
    families = skewed_families(size, OUR_NODES // size)
    weights = families.weights if weighted else None

    def work() -> None:
        project_l2_families(families.x, families.start, families.totals, weights, workers=1)

    return families.x.size / seconds(work, OUR_REPETITIONS)


def solve_new_problems(families: Families, size: int, weighted: bool) -> None:
    """Write each family down as a problem of its own, as its user would."""
    import cvxpy as cp

    for family, total in enumerate(families.totals):
        children = slice(families.start[family], families.start[family + 1])
        y = cp.Variable(size)
        error = y - families.x[children]
        if weighted:
            error = cp.multiply(np.sqrt(families.weights[children]), error)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(error)), [y >= 0, cp.sum(y) == total])
        problem.solve(solver=cp.CLARABEL)


def solve_one_problem_again(families: Families, size: int, weighted: bool) -> None:
    """Compile one problem with parameters and set them for each family: cvxpy at its fastest."""
    import cvxpy as cp

    y, total = cp.Variable(size), cp.Parameter()
    root, rooted_x = cp.Parameter(size), cp.Parameter(size)
    # The root of the weights is multiplied into x outside, or cvxpy would compile each time.
    error = cp.multiply(root, y) - rooted_x
    problem = cp.Problem(cp.Minimize(cp.sum_squares(error)), [y >= 0, cp.sum(y) == total])
    for family in range(families.totals.size):
        children = slice(families.start[family], families.start[family + 1])
        root.value = np.sqrt(families.weights[children]) if weighted else np.ones(size)
        rooted_x.value = root.value * families.x[children]
        total.value = families.totals[family]
        problem.solve(solver=cp.CLARABEL)


def their_nodes_per_second(
    solve: Callable[[Families, int, bool], None], size: int, weighted: bool
) -> float:
    families = skewed_families(size, THEIR_FAMILIES)
    return families.x.size / seconds(lambda: solve(families, size, weighted), THEIR_REPETITIONS)


def main() -> None:
    has_cvxpy = all(find_spec(name) for name in ("cvxpy", "clarabel"))
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    for weighted in (False, True):
        label = "any weights, real estimates" if weighted else "equal weights, whole estimates"
        wrong = mismatches(weighted)
        print(f"{label}: {wrong} mismatches with brute force in {CHECKED_FAMILIES:,} families")
    print(f"median of {OUR_REPETITIONS} runs of {OUR_NODES:,} nodes, on one core, checks included")
    if has_cvxpy:
        print(f"cvxpy + Clarabel: median of {THEIR_REPETITIONS} runs of {THEIR_FAMILIES} families")
        print(f"target: {TARGET:,}x a new problem for each family")
    else:
        print("cvxpy or Clarabel is not installed (extra `bench`): no comparison in this run")
    print(f"\n{'':19}{'million nodes/s':>16}{'times as fast as cvxpy':>28}")
    print(f"{'children':>8}  {'weights':<9}{'Trellis':>16}{'new problem':>14}{'same again':>14}")
    for size, weighted in product(FAMILY_SIZES, (False, True)):
        ours = our_nodes_per_second(size, weighted)
        row = f"{size:>8}  {'any' if weighted else 'equal':<9}{ours / 1e6:>16.1f}"
        for solve in (solve_new_problems, solve_one_problem_again) if has_cvxpy else ():
            row += f"{ours / their_nodes_per_second(solve, size, weighted):>13,.0f}x"
        print(row, flush=True)


if __name__ == "__main__":
    main()
