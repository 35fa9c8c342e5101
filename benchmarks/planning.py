"""Planning: programs (6) and (7), Delaware, the data-free planner, targets of all kinds.

Run `python benchmarks/planning.py`. cvxpy is in the extra `bench`. The error of clipped noise is
not in its rules; as the integral of k exp(-epsilon k) over 0 .. N plus 1 / epsilon^2 it is, so
cvxpy gets the counts grouped and that integral by Gauss-Legendre quadrature.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from _planning_histograms import show_histograms, show_simulated_histogram
from _planning_scenes import DATA, RELEASES, demo_scene, demo_state, prepared, verdict
from _planning_targets import show_area_targets, show_level_targets
from scipy.optimize import minimize

from trellis.ingest.public.hierarchies import from_prefixes
from trellis.ingest.public.priors import Prior, read_prior
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.planning.allocation.choose import Scene, Wish, choose
from trellis.planning.budget import allocate, clipped_bias, clipped_mse, least_budget
from trellis.planning.budget.allocation import LevelCounts
from trellis.planning.forecast.outlook import Outlook
from trellis.privacy.budget import Budget
from trellis.samples.demo import block_populations
from trellis.workflow.outlook.simulate_counts import simulate_counts
from trellis.workflow.progress import Silent

NODES = 24


def best_of(function: Callable[[], object], repetitions: int = 5) -> float:
    times = []
    for _ in range(repetitions):
        began = perf_counter()
        function()
        times.append(perf_counter() - began)
    return median(times)


def skewed_levels(n_leaves: int, fan_outs: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    levels = [block_populations(rng, n_leaves).astype(np.int64)]
    for fan_out in fan_outs:
        start = np.arange(0, levels[0].size, fan_out)
        levels.insert(0, np.add.reduceat(levels[0], start))
    return levels


def laplace_error(levels: list[np.ndarray], epsilons: np.ndarray) -> float:
    return sum(
        clipped_mse("laplace", 1 / e, n).sum() for e, n in zip(epsilons, levels, strict=True)
    )


def general_solver(levels: list[np.ndarray], total: float) -> np.ndarray:
    begin = np.full(len(levels), total / len(levels))
    scale = laplace_error(levels, begin)
    return minimize(
        lambda e: laplace_error(levels, e) / scale,
        begin,
        bounds=[(1e-6, total)] * len(levels),
        constraints={"type": "eq", "fun": lambda e: e.sum() - total},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    ).x


def general_least_budget(levels: list[np.ndarray], tau: float) -> np.ndarray:
    return minimize(
        np.sum,
        np.full(len(levels), 1.0),
        jac=lambda e: np.ones_like(e),
        bounds=[(1e-6, 100)] * len(levels),
        constraints={"type": "ineq", "fun": lambda e: 1 - laplace_error(levels, e) / tau},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    ).x


def by_cvxpy(levels: list[np.ndarray], total: float) -> np.ndarray:
    import cvxpy

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    scale = laplace_error(levels, np.full(len(levels), total / len(levels)))
    # About the answer, for the solver's sake: it fails on badly scaled exponents.
    typical = np.array([level.size for level in levels]) ** (1 / 3)
    typical *= total / typical.sum()
    z = cvxpy.Variable(len(levels))
    errors = []
    for i, counts in enumerate(levels):
        level = LevelCounts.of(counts)
        ends = np.minimum(level.values, 25 / typical[i])  # beyond, nothing is left to integrate
        k = (ends[:, None] * (nodes + 1) / 2).ravel()
        w = (ends[:, None] * weights / 2 * level.areas[:, None]).ravel() * k / scale
        kept = w > 1e-10
        errors.append(level.size / typical[i] ** 2 / scale * cvxpy.power(z[i], -2))
        errors.append(w[kept] @ cvxpy.exp(-(k[kept] * typical[i]) * z[i]))
    problem = cvxpy.Problem(cvxpy.Minimize(sum(errors)), [typical @ z <= total])
    problem.solve(solver=cvxpy.CLARABEL)
    return typical * z.value


def show_programs() -> bool:
    print("Programs (6) and (7)")
    national = skewed_levels(6_000_000, (25, 3, 28, 27, 106))
    sizes = ", ".join(f"{level.size:,}" for level in national)
    six = best_of(lambda: allocate(national, 1.0))
    seven = best_of(lambda: least_budget(national, 1e8))
    fine = verdict(f"  {sizes} areas: program (6) {six:.3f} s", "1 s", six < 1)
    fine &= verdict(f"  the same, program (7) {seven:.3f} s", "1 s", seven < 1)
    small = skewed_levels(20_000, (50, 20, 20))
    found = allocate(small, 1.0)
    ours = best_of(lambda: allocate(small, 1.0))
    gap = laplace_error(small, found) / laplace_error(small, general_solver(small, 1.0)) - 1
    words = f"  20,000 leaves: error of program (6) beside SLSQP {gap:+.1e}"
    fine &= verdict(words, "at most 1e-6", gap < 1e-6)
    tau = laplace_error(small, found)
    gap = least_budget(small, tau).sum() / general_least_budget(small, tau).sum() - 1
    words = f"  20,000 leaves: budget of program (7) beside SLSQP {gap:+.1e}"
    fine &= verdict(words, "at most 1e-6", gap < 1e-6)
    if find_spec("cvxpy") is None:
        print("  cvxpy is not installed: no comparison")
        return fine
    began = perf_counter()
    theirs = by_cvxpy(small, 1.0)
    seconds = perf_counter() - began
    gap = laplace_error(small, found) / laplace_error(small, theirs) - 1
    words = (
        f"  20,000 leaves: ours {ours:.4f} s, cvxpy with Clarabel {seconds:.1f} s, "
        f"{seconds / ours:,.0f} times; our error beside theirs {gap:+.1e}"
    )
    return fine & verdict(words, "100 times, 1e-6", seconds / ours >= 100 and gap < 1e-6)


def show_delaware() -> bool:
    """Shares from the census of 2010, errors for the counts of 2020."""
    print("\nDelaware, state > tract > block, epsilon = 2, Laplace noise; prior of 2010")
    now, old = (DATA / f"census_blocks_{year}_de.parquet" for year in (2020, 2010))
    if not now.is_file():
        print(f"  skipped: {DATA} has no census files")
        return True
    prefixes = {"state": 2, "tract": 11, "block": 15}
    truth, prior = (counts_by_level(path, prefixes) for path in (now, old))
    found, uniform = allocate(prior, 2.0), np.full(3, 2 / 3)
    stated = np.array([0.0588, 0.3526, 1.5886])
    words = ", ".join(f"{e:.4f}" for e in found)
    fine = verdict(f"  optimal ({words})", "(0.0588, 0.3526, 1.5886)",
                   bool(np.abs(found - stated).max() < 5e-4))  # fmt: skip
    error = laplace_error(truth, found) / laplace_error(truth, uniform)
    fine &= verdict(f"  squared error {error:.4f} of uniform", "at most 0.25", error <= 0.25)
    bias = squared_bias(truth, found) / squared_bias(truth, uniform)
    fine &= verdict(f"  squared bias {bias:.4f} of uniform", "at most 0.19", bias <= 0.19)
    rng, seen = np.random.default_rng(), 0.0
    for _ in range(RELEASES):
        for epsilon, level in zip(found, truth, strict=True):
            noisy = np.maximum(level + rng.laplace(0, 1 / epsilon, level.size), 0)
            seen += float(((noisy - level) ** 2).sum()) / RELEASES
    gap = seen / laplace_error(truth, found) - 1
    return fine & verdict(f"  simulated over closed form {gap:+.2%}", "3 %", abs(gap) < 0.03)


def counts_by_level(path: Path, prefixes: dict[str, int]) -> list[np.ndarray]:
    tree = from_prefixes(path, "geoid", prefixes)
    return tree.sum_up(read_prior(Prior(path, "geoid", [{"pop": 1}]), tree, None)[:, 0])


def squared_bias(levels: list[np.ndarray], epsilons: np.ndarray) -> float:
    return sum(
        float((clipped_bias("laplace", 1 / e, n) ** 2).sum())
        for e, n in zip(epsilons, levels, strict=True)
    )


def show_planner(tree: Hierarchy, people: np.ndarray, scene: Scene) -> bool:
    weightings = {
        "equal": (1, 1, 1, 1),
        "mean by level": tuple(1 / n for n in tree.areas[1:]),
        "blocks only": (0, 0, 0, 1),
        "counties and blocks": (1000, 0, 0, 1),
        "upper levels": (100, 10, 1, 0.1),
    }
    print("\nData-free planner on the demo: weighted error of others over optimal")
    print("  weights".ljust(26) + "uniform".rjust(10) + "fan-out".rjust(10) + "census".rjust(10)
          + "simulated / expected".rjust(24))  # fmt: skip
    fine = True
    for name, weights in weightings.items():
        wish = Wish(Budget(rho=Fraction(1)), weights=weights, keep=scene.slots[-1:])
        chosen = {level: share for (level, _), share in choose(scene, wish).shares.items()}
        ready = prepared(tree, Budget(rho=Fraction(1)), Shares(chosen))
        outlook = Outlook.of(ready.plan, tree)
        assert outlook is not None
        mine = expected_error(outlook, dict(zip([s[0] for s in scene.slots], weights, strict=True)))
        full = Outlook(scene, np.ones(4) / 4)
        others = [
            full.compare([o], weights)[1].squared_error / mine
            for o in ("uniform", "fan-out", "census")
        ]
        made = simulate_counts(ready, people, RELEASES, progress=Silent())
        seen = sum(
            w * n * (line.linear_root_mean_square or 0) ** 2
            for line, n, w in zip(made.levels[1:], tree.areas[1:], weights, strict=True)
        )
        fine &= verdict(
            f"  {name:24}" + "".join(f"{ratio:10.3f}" for ratio in others) + f"{seen / mine:24.4f}",
            "all at least 1, 1 +- 0.05",
            min(others) >= 1 - 1e-6 and abs(seen / mine - 1) < 0.05,
        )
    return fine


def expected_error(outlook: Outlook, weights: dict[str, float]) -> float:
    means, tree = outlook.root_mean_squares(), outlook.scene.hierarchy
    areas = dict(zip(tree.level_names, tree.areas, strict=True))
    return sum(w * areas[level] * means[level] ** 2 for level, w in weights.items())


def main() -> int:
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, Python {platform.python_version()}; medians of 5")
    fine = show_programs()
    fine &= show_delaware()
    tree, people = demo_state()
    scene = demo_scene(tree)
    fine &= show_planner(tree, people, scene)
    fine &= show_level_targets(tree, people, scene)
    fine &= show_area_targets()
    fine &= show_histograms(60_000)
    fine &= show_simulated_histogram()
    print("\nall targets reached" if fine else "\nA TARGET WAS MISSED")
    return not fine


if __name__ == "__main__":
    sys.exit(main())
