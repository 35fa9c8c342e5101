"""One family of histograms: the solver beside PIQP and Clarabel, and rounding beside HiGHS.

Run `python benchmarks/histogram_solver.py`. The peers are in the extra `bench`. They get the
problem with one variable for each count and each residual, the sparsest way to write it down.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from _generated_state import LEVELS, QUERIES, SCHEMA, variances
from scipy import sparse

from trellis.estimate import round_family, solve_family
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.model.tables.queries import parse_query

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the integer program
from oracles.histogram_family import least_rounding, rounding_objective

FAMILIES = ((20, 700, "county"), (60, 2016, "tract"))
SHAPES = (
    (3, 40, 40),
    (3, 300, 20),
    (4, 60, 40),
    (8, 120, 20),
    (12, 200, 20),
    (20, 40, 20),
    (20, 300, 20),
    (60, 60, 20),
    (60, 300, 12),
    (20, 2016, 4),
    (60, 2016, 4),
)
REPETITIONS = 3
TARGETS = {"PIQP": 10, "Clarabel": 50}
TWO = ("hispanic * cenrace", "detailed")


def family(n_children: int, n_cells: int, level: str, seed: int = 0):
    """Children with `n_cells` cells in use, and noisy answers to all queries."""
    rng = np.random.default_rng(seed)
    truth = true_children(n_children, n_cells, rng)
    return truth.sum(axis=0), *noisy_answers(truth, level, rng)


def true_children(n_children: int, n_cells: int, rng: np.random.Generator) -> np.ndarray:
    used = rng.choice(SCHEMA.n_cells, n_cells, replace=False)
    truth = np.zeros((n_children, SCHEMA.n_cells), dtype=np.int64)
    truth[:, used] = rng.poisson(rng.gamma(0.3, 12, n_cells), (n_children, n_cells))
    truth[0, used] += 1
    return truth


def noisy_answers(truth: np.ndarray, level: str, rng: np.random.Generator):
    noise = variances(level)
    values = {}
    for name in QUERIES:
        answer = parse_query(SCHEMA, name).answer(truth)
        values[name] = answer + np.rint(rng.normal(0, noise[name] ** 0.5, answer.shape))
    return values, noise


def lifted(parent, values, noise):
    """P, c, A, b with 1/2 v'Pv + c'v, Av = b, v = (counts >= 0, answers)."""
    active = np.flatnonzero(parent)
    n, width = active.size, len(values["total"])
    rows, weight, target = [], [], []
    for name in QUERIES:
        query = parse_query(SCHEMA, name)
        cells, position = np.unique(query.cell_of[active], return_inverse=True)
        matrix = sparse.csr_matrix((np.ones(n), (position, np.arange(n))))
        rows.append(sparse.kron(sparse.eye(width), matrix))
        weight.append(np.full(cells.size * width, 1 / noise[name]))
        target.append(values[name][:, cells].ravel())
    q = sparse.vstack(rows)
    w, z = np.concatenate(weight), np.concatenate(target)
    a = sparse.vstack(
        [
            sparse.hstack([q, -sparse.eye(q.shape[0])]),
            sparse.hstack(
                [sparse.kron(np.ones((1, width)), sparse.eye(n)), sparse.csr_matrix((n, z.size))]
            ),
        ],
        format="csc",
    )
    p = sparse.block_diag([sparse.csc_matrix((n * width, n * width)), sparse.diags(w)], "csc")
    c = np.concatenate([np.zeros(n * width), -w * z])
    b = np.concatenate([np.zeros(z.size), parent[active].astype(float)])
    return p, c, a, b, active, width


def clarabel(p, c, a, b, active, width) -> np.ndarray:
    import clarabel as engine

    n = active.size * width
    positive = sparse.hstack([-sparse.eye(n), sparse.csr_matrix((n, c.size - n))])
    settings = engine.DefaultSettings()
    settings.verbose = False
    cones = [engine.ZeroConeT(b.size), engine.NonnegativeConeT(n)]
    rows = sparse.vstack([a, positive], format="csc")
    right = np.concatenate([b, np.zeros(n)])
    solver = engine.DefaultSolver(sparse.triu(p, format="csc"), c, rows, right, cones, settings)
    return np.array(solver.solve().x)[:n]


def piqp(p, c, a, b, active, width) -> np.ndarray:
    import piqp as engine

    n = active.size * width
    solver = engine.SparseSolver()
    lower = np.concatenate([np.zeros(n), np.full(c.size - n, -np.inf)])
    solver.setup(p, c, a, b, None, None, None, lower, np.full(c.size, np.inf))
    solver.solve()
    return np.array(solver.result.x)[:n]


PEERS: dict[str, Callable[..., np.ndarray]] = {"PIQP": piqp, "Clarabel": clarabel}


def seconds(work: Callable[[], object], repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return median(times)


def compare_solvers() -> None:
    print("certified RMS distance to the optimum, and how many times as long the peers take")
    print(f"{'family':>12}{'seconds':>10}{'distance':>10}" + "".join(f"{p:>22}" for p in PEERS))
    for n_children, n_cells, level in FAMILIES:
        parent, values, noise = family(n_children, n_cells, level)
        found = solve_family(SCHEMA, parent, QUERIES, values, noise)

        def ours(parent=parent, values=values, noise=noise) -> object:
            return solve_family(SCHEMA, parent, QUERIES, values, noise)

        mine = seconds(ours, REPETITIONS)
        row = f"{n_children:>5} x{n_cells:>5,}{mine:>10.3f}{found.distance:>10.3f}"
        problem = lifted(parent, values, noise)
        for name, solve in PEERS.items():
            if find_spec(name.lower()) is None:
                row += f"{'not installed':>22}"
                continue
            began = perf_counter()
            x = solve(*problem).reshape(n_children, -1)
            ratio = (perf_counter() - began) / mine
            apart = np.sqrt(np.mean((x - found.children[:, problem[4]]) ** 2))
            row += f"{ratio:>8,.0f}x ({apart:.3f} off)"
        print(row, flush=True)
    print(f"targets: {TARGETS}, at 4,000 variables or more and a distance of at most 0.03\n")


def facility_bounds(truth: np.ndarray, slack: float) -> list[FamilyBound]:
    """By child: the exact total, nobody in types that it lacks, and others near the truth."""
    held = parse_query(SCHEMA, "hhgq").answer(truth)
    total = truth.sum(axis=1, keepdims=True)
    return [
        FamilyBound("hhgq", np.floor(held * (1 - slack)), np.floor(held * (1 + slack))),
        FamilyBound("total", total.astype(float), total.astype(float)),
    ]


def solve_under_constraints() -> None:
    print("exact totals, and bounds on hhgq from below and above, of every child: processor time")
    print("over that of the plain family, distance, largest violation before rounding, and bounds")
    print(
        "      family  bounds +-    solve   distance  violation    round  solve and round  broken"
    )
    for n_children, n_cells, level in FAMILIES:
        rng = np.random.default_rng(0)
        truth = true_children(n_children, n_cells, rng)
        kind = parse_query(SCHEMA, "hhgq").cell_of
        closed = rng.random((n_children, 8)) < 0.3
        truth[1:][closed[1:, kind]] = 0
        values, noise = noisy_answers(truth, level, rng)
        plain = timed_family(truth, values, noise, [])
        for slack in (1.0, 0.1, 0.02):
            bounds = facility_bounds(truth, slack)
            found = timed_family(truth, values, noise, bounds)
            answers = [parse_query(SCHEMA, bound.query).answer(found[3]) for bound in bounds]
            broken = sum(
                ((answer < bound.lower) | (answer > bound.upper)).sum()
                for answer, bound in zip(answers, bounds, strict=True)
            )
            assert (found[3].sum(axis=0) == truth.sum(axis=0)).all()
            ratio = (found[0] + found[1]) / (plain[0] + plain[1])
            print(
                f"{n_children:>5} x{n_cells:>5,}{slack:>11.0%}{found[0] / plain[0]:>8.2f}x"
                f"{found[2].distance:>11.3f}{found[2].violation:>11.3f}"
                f"{found[1] / plain[1]:>7.2f}x{ratio:>16.2f}x{broken:>8}",
                flush=True,
            )
    print("target: at most 3x the plain family\n")


def timed_family(truth, values, noise, bounds):
    """Processor time of solving and of rounding, the solution, and the whole children."""
    parent = truth.sum(axis=0)
    times = []
    for _ in range(REPETITIONS + 1):  # the first may compile
        began = process_time()
        found = solve_family(SCHEMA, parent, QUERIES, values, noise, bounds=bounds)
        between = process_time()
        whole = round_family(SCHEMA, parent, found.children, QUERIES, bounds=bounds)
        times.append((between - began, process_time() - between))
    solving, rounding = (median(column) for column in zip(*times[1:], strict=True))
    return solving, rounding, found, whole


def largest_shift(x: np.ndarray, y: np.ndarray) -> float:
    return max(np.abs(parse_query(SCHEMA, q).answer(y - x)).mean() for q in QUERIES)


def compare_rounding() -> None:
    print(f"rounding with {' and '.join(TWO)}: sum of |Q (y - x)| over the optimum's, and speed")
    print("      family  objective   our ms  HiGHS s   faster  largest shift")
    for n_children, n_cells in ((3, 40), (5, 60), (8, 120), (20, 300)):
        parent, values, noise = family(n_children, n_cells, "county", seed=n_cells)
        x = solve_family(SCHEMA, parent, QUERIES, values, noise).children
        active = np.flatnonzero(parent)
        maps = [
            np.unique(parse_query(SCHEMA, name).cell_of[active], return_inverse=True)[1]
            for name in TWO
        ]
        real = x[:, active].T
        began = perf_counter()
        least, _ = least_rounding(maps, real, parent[active], 120.0)
        theirs = perf_counter() - began
        y = round_family(SCHEMA, parent, x, TWO)

        def ours(parent=parent, x=x) -> object:
            return round_family(SCHEMA, parent, x, TWO)

        mine = seconds(ours, 20)
        full = round_family(SCHEMA, parent, x, QUERIES)
        assert (full.sum(axis=0) == parent).all()
        reached = rounding_objective(maps, real, y[:, active].T)
        print(
            f"{n_children:>5} x{n_cells:>5}{reached / least:>11.3f}{mine * 1e3:>9.2f}{theirs:>9.2f}"
            f"{theirs / mine:>8,.0f}x{largest_shift(x, full):>15.3f}",
            flush=True,
        )
    print("targets: objective at most 1.15, 100x as fast, mean shift of every marginal at most 0.5")
    print("(the shift is that of rounding with all 11 queries)\n")


def shifts_of_many_families() -> None:
    """The largest mean shift among 11 queries, in families of many shapes and four strategies."""
    print("largest mean shift of a marginal, all 11 queries, families of all levels' strategies")
    print("      family  families   median  largest   ms / solve ms")
    everything = []
    for n_children, n_cells, families in SHAPES:
        shifts, rounding, solving = [], 0.0, 0.0
        for seed in range(families):
            parent, values, noise = family(n_children, n_cells, LEVELS[2 + seed % 4], seed)
            began = perf_counter()
            x = solve_family(SCHEMA, parent, QUERIES, values, noise).children
            between = perf_counter()
            y = round_family(SCHEMA, parent, x, QUERIES)
            rounding += perf_counter() - between
            solving += between - began
            assert (y.sum(axis=0) == parent).all()
            shifts.append(largest_shift(x, y))
        everything += shifts
        print(
            f"{n_children:>5} x{n_cells:>5}{families:>10}{median(shifts):>9.3f}{max(shifts):>9.3f}"
            f"{rounding / families * 1e3:>10.2f} / {solving / families * 1e3:.1f}",
            flush=True,
        )
    above = sum(shift > 0.5 for shift in everything)
    print(f"above 0.5: {above} of {len(everything)}\n")


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"median of {REPETITIONS} runs, on one core, checks of arguments included\n")
    compare_solvers()
    solve_under_constraints()
    compare_rounding()
    shifts_of_many_families()


if __name__ == "__main__":
    main()
