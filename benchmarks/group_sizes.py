"""Group sizes: exactness, speed beside the paper's cost tables and Clarabel, accuracy on taxis.

Run `python benchmarks/group_sizes.py`, or with names of parts: exactness census depth taxis.
Times are CPU seconds of one thread, checks of the input included. Clarabel is in the extra `bench`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from _group_size_data import TAXI, GroupSizes, Tables, census_like, five_levels, taxis
from _kuo_matching import kuo_matching
from _paper_cost_tables import solve_by_tables, window

from trellis.estimate.group_sizes import MECHANISMS, cumulative_exact, cumulative_joint, solve
from trellis.model import Hierarchy
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.mechanisms import DiscreteLaplace

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the exact twin and the metrics
from group_size_metrics import earth_movers_distance, l1_error, violations
from oracles.group_sizes import least_objective, objective

EPSILONS = (Fraction(1), Fraction(1, 2), Fraction(1, 10))
CHECKED_INSTANCES = 10_000
REPETITIONS = 7
SIZES_FOR_TABLES = {Fraction(1): 1000, Fraction(1, 2): 250, Fraction(1, 10): 10}
"""The paper's tables take time in proportion to the number of sizes, and memory; for small epsilon
some of the sizes are timed and the time multiplied."""

SIZES_FOR_CLARABEL = 40
TABLES_TARGET = {Fraction(1): 30, Fraction(1, 2): 120, Fraction(1, 10): 1000}
CLARABEL_TARGET = 150
MILLISECONDS_TARGET = 60
JOINT_L1_TARGET = (1.03, 0.95, 1.02)
JOINT_EMD_TARGET = (20, 300, 100)
TAXI_DRAWS = 5


def seconds(work: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """The median CPU time, after one call to compile."""
    work()
    return median(once(work) for _ in range(repetitions))


def once(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


# -- exactness ------------------------------------------------------------------------------------


def exactness() -> None:
    rng, mismatches = np.random.default_rng(2026), 0
    for instance in range(CHECKED_INSTANCES):
        tree = random_tree(rng, int(rng.integers(1, 6)))
        n_sizes, spread = int(rng.integers(1, 5)), int(rng.integers(1, 9))
        noisy = [rng.integers(-spread, spread + 3, (n, n_sizes)) for n in tree.sizes]
        weights, total = rng.integers(1, 5, tree.n_levels).tolist(), int(rng.integers(0, 16))
        fitted = solve(tree, noisy, total, weights, tie_seed=instance)
        least = least_objective(tree, noisy, weights, total, most=total)
        feasible = violations(tree, fitted, fitted[-1].sum(axis=1)).count == 0
        feasible &= int(fitted[0].sum()) == total
        mismatches += not feasible or objective(fitted, noisy, weights) != least
    print(f"{mismatches} mismatches with a dynamic program in {CHECKED_INSTANCES:,} random trees")
    print("of 1 to 5 levels, with weights, negative noise and ties")


def random_tree(rng: np.random.Generator, n_levels: int) -> Hierarchy:
    paths = [("r",)]
    for _ in range(n_levels - 1):
        longer = [(*p, f"{p[-1]}.{c}") for p in paths for c in range(rng.integers(1, 4))]
        paths = longer[: max(14, len(paths))]
    return Hierarchy.from_paths(paths)


# -- speed ----------------------------------------------------------------------------------------


def census() -> None:
    data = census_like()
    print(f"{data.tree.sizes} regions, {data.tables[0].shape[1]:,} sizes, {data.total:,} groups")
    print(f"target: {MILLISECONDS_TARGET} ms; times as fast as the paper's cost tables, compiled:")
    print(", ".join(f"{t}x at epsilon {float(e)}" for e, t in TABLES_TARGET.items()))
    print(
        f"\n{'':10}{'noise':>10}{'M_H exact':>11}{'violations':>12}{'cost tables':>14}{'':>10}"
        f"{'cost':>14}\n{'epsilon':>7}{'ms':>13}{'ms':>11}{'':>12}{'s':>14}{'ratio':>10}"
        f"{'theirs - ours':>14}"
    )
    for epsilon in EPSILONS:
        noisy = data.noisy_histogram(epsilon)
        law = DiscreteLaplace(2 * len(noisy) / epsilon)
        noise_seconds = seconds(lambda law=law: law.sample(data.n_cells))
        fitted = solve(data.tree, noisy, data.total)
        ours = seconds(lambda noisy=noisy: solve(data.tree, noisy, data.total))
        broken = violations(data.tree, fitted, data.groups).count
        theirs, excess = by_cost_tables(data, noisy, epsilon)
        print(
            f"{float(epsilon):>7}{noise_seconds * 1e3:>13.1f}{ours * 1e3:>11.1f}{broken:>12}"
            f"{theirs:>14.2f}{theirs / ours:>9,.0f}x{excess:>14}",
            flush=True,
        )
    beside_clarabel(data)
    all_mechanisms(data)


def by_cost_tables(data: GroupSizes, noisy: Tables, epsilon: Fraction) -> tuple[float, int]:
    """Seconds for all sizes, and how much more than ours their answer costs."""
    n_sizes, timed = noisy[0].shape[1], SIZES_FOR_TABLES[epsilon]
    some = [np.ascontiguousarray(t[:, :: n_sizes // timed]) for t in noisy]
    total = int(data.tables[0][0, :: n_sizes // timed].sum())
    delta, answer = window(float(2 * len(noisy) / epsilon)), []
    solve_by_tables(data.tree, [t[:, :1].copy() for t in some], 5, delta=50)  # compile
    taken = once(lambda: answer.extend(solve_by_tables(data.tree, some, total, delta)))
    ours = solve(data.tree, some, total)
    ones = [1] * len(noisy)
    excess = objective(answer, some, ones) - objective(ours, some, ones)
    return taken * n_sizes / timed, excess


def beside_clarabel(data: GroupSizes) -> None:
    if not find_spec("clarabel"):
        print("\nClarabel is not installed (extra `bench`): no comparison in this run")
        return
    epsilon = Fraction(1)
    noisy = [np.ascontiguousarray(t[:, :SIZES_FOR_CLARABEL]) for t in data.noisy_histogram(epsilon)]
    total = int(data.tables[0][0, :SIZES_FOR_CLARABEL].sum())
    ours = seconds(lambda: solve(data.tree, noisy, total))
    taken, status, cost = solve_by_clarabel(data.tree, noisy, total)
    exact = objective(solve(data.tree, noisy, total), noisy, [1] * len(noisy))
    print(f"\nClarabel in residual form on {SIZES_FOR_CLARABEL} sizes, epsilon 1: {status},")
    print(f"{taken:.2f} s against {ours * 1e3:.2f} ms: {taken / ours:,.0f}x ({CLARABEL_TARGET}x)")
    print(f"its real optimum costs {cost:,.1f}, our whole one {exact:,}")


def solve_by_clarabel(tree: Hierarchy, noisy: Tables, total: int) -> tuple[float, str, float]:
    """CPU seconds, status and cost of the relaxation in e = x - noisy.

    In x itself the solver's relative tolerances are lost on counts of millions.
    """
    import clarabel
    from scipy import sparse

    n_sizes, offsets = noisy[0].shape[1], np.concatenate([[0], np.cumsum(tree.sizes)])
    n, eye = int(offsets[-1]) * n_sizes, sparse.identity(noisy[0].shape[1], format="csr")
    y = np.concatenate([t.ravel() for t in noisy]).astype(np.float64)
    sums = []
    for level in range(tree.leaf_level):
        parents = np.arange(tree.sizes[level])
        child = np.arange(tree.sizes[level + 1])
        rows = np.concatenate([parents, tree.parents(level + 1)])
        columns = np.concatenate([offsets[level] + parents, offsets[level + 1] + child])
        ones = np.concatenate([np.ones(parents.size), -np.ones(child.size)])
        shape = parents.size, int(offsets[-1])
        sums.append(sparse.kron(sparse.csr_matrix((ones, (rows, columns)), shape), eye))
    root = sparse.csr_matrix((np.ones(n_sizes), (np.zeros(n_sizes), np.arange(n_sizes))), (1, n))
    equal = sparse.vstack([*sums, root])
    wanted = np.zeros(equal.shape[0])
    wanted[-1] = total
    first_leaf = int(offsets[-2]) * n_sizes
    leaves = sparse.identity(n, format="csr")[first_leaf:]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    began = process_time()
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(2 * sparse.identity(n)),
        np.zeros(n),
        sparse.csc_matrix(sparse.vstack([equal, -leaves])),
        np.concatenate([wanted - equal @ y, y[first_leaf:]]),
        [clarabel.ZeroConeT(equal.shape[0]), clarabel.NonnegativeConeT(leaves.shape[0])],
        settings,
    ).solve()
    taken = process_time() - began
    return taken, str(answer.status), float(np.sum(np.square(answer.x)))


def all_mechanisms(data: GroupSizes) -> None:
    for mechanism in MECHANISMS.values():  # compile
        mechanism.post_process(Hierarchy.from_paths([("r", "a")]), [[[1, 2]], [[2, 1]]], [3])
    print(f"\n{data.name}, epsilon 1: L1 error by level, violations and CPU seconds")
    for name, mechanism in MECHANISMS.items():
        histogram = mechanism.query is SizeQuery.HISTOGRAM
        draw = data.noisy_histogram if histogram else data.noisy_cumulative
        noisy, answer = draw(Fraction(1)), []
        taken = once(
            lambda m=mechanism, noisy=noisy, answer=answer: answer.extend(
                m.post_process(data.tree, noisy, data.groups)
            )
        )
        errors = [l1_error(t, true) for t, true in zip(answer, data.tables, strict=True)]
        broken = violations(data.tree, answer, data.groups).count
        print(
            f"{name:<20}" + "".join(f"{e:>12,}" for e in errors) + f"{broken:>12,}{taken:>9.2f}",
            flush=True,
        )


def depth() -> None:
    data = five_levels()
    print(f"{data.tree.sizes} regions, {data.tables[0].shape[1]} sizes; target: 1 microsecond/cell")
    print(f"\n{'epsilon':>7}{'noise, us/cell':>18}{'M_H exact, us/cell':>22}{'violations':>14}")
    for epsilon in EPSILONS:
        noisy = data.noisy_histogram(epsilon)
        law = DiscreteLaplace(2 * len(noisy) / epsilon)
        noise_seconds = seconds(lambda law=law: law.sample(data.n_cells), 3)
        fitted = solve(data.tree, noisy, data.total)
        ours = seconds(lambda noisy=noisy: solve(data.tree, noisy, data.total), 3)
        broken = violations(data.tree, fitted, data.groups).count
        print(
            f"{float(epsilon):>7}{noise_seconds / data.n_cells * 1e6:>18.4f}"
            f"{ours / data.n_cells * 1e6:>22.4f}{broken:>14}",
            flush=True,
        )


# -- accuracy -------------------------------------------------------------------------------------


def taxi_accuracy() -> None:
    if not TAXI.exists():
        print(f"{TAXI} is not here: no comparison in this run")
        return
    data = taxis()
    print(f"{data.tree.sizes} regions, {data.tables[0].shape[1]:,} sizes, {data.total:,} groups;")
    print(f"means of {TAXI_DRAWS} draws; targets: L1 at most {JOINT_L1_TARGET}, earth mover's")
    print(f"distance at least {JOINT_EMD_TARGET} times smaller than cumulative_exact's")
    methods = {
        "cumulative_exact": cumulative_exact,
        "cumulative_joint": cumulative_joint,
        "Kuo et al.": kuo_matching,
    }
    for epsilon in EPSILONS:
        l1, emd = {name: [] for name in methods}, {name: [] for name in methods}
        for _ in range(TAXI_DRAWS):
            noisy = data.noisy_cumulative(epsilon)
            for name, method in methods.items():
                fitted = method(data.tree, noisy, data.groups)
                assert violations(data.tree, fitted, data.groups).count == 0
                pairs = list(zip(fitted, data.tables, strict=True))
                l1[name].append([l1_error(*pair) for pair in pairs])
                emd[name].append([earth_movers_distance(*pair) for pair in pairs])
        print(f"\nepsilon {float(epsilon)}{'L1, levels 1 / 2 / 3':>34}{'earth mover':>36}")
        for name in methods:
            row = [*np.mean(l1[name], axis=0), *np.mean(emd[name], axis=0)]
            print(f"{name:<18}" + "".join(f"{value:>12,.0f}" for value in row))
        for name in list(methods)[1:]:
            ratios = np.mean(l1[name], axis=0) / np.mean(l1["cumulative_exact"], axis=0)
            gains = np.mean(emd["cumulative_exact"], axis=0) / np.mean(emd[name], axis=0)
            print(
                f"{name:<18}"
                + "".join(f"{r:>11.3f}x" for r in ratios)
                + "".join(f"{g:>10,.0f}x <" for g in gains),
                flush=True,
            )


PARTS = {"exactness": exactness, "census": census, "depth": depth, "taxis": taxi_accuracy}


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, one thread, CPU time")
    for name in sys.argv[1:] or PARTS:
        print(f"\n-- {name} ".ljust(80, "-"))
        PARTS[name]()


if __name__ == "__main__":
    main()
