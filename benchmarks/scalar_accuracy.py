"""Error of the default estimator beside plain top-down, on the same noisy counts.

Run `python benchmarks/scalar_accuracy.py`. One count per area on a tree like the demo's; every
level is measured, the root too, with shares 1:1:2:4:8 of a zero-concentrated budget rho.
`topdown` fits the noisy children to their parent, family by family; `gls_topdown` fits the best
estimates from each child's subtree, weighted by their precisions. Noise comes from the operating
system, so figures differ a little from run to run.
"""

from __future__ import annotations

import os
import platform
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trellis.estimate import gls, project_l2_families
from trellis.model import Hierarchy
from trellis.model.trees.codes import CODE
from trellis.numerics.trees.gls import estimates_up, variances_up
from trellis.privacy.mechanisms import DiscreteGaussian

LEVELS = {"state": 1, "county": 33, "tract": 500, "group": 1500, "block": 100_000}
SHARES = (1, 1, 2, 4, 8)
BUDGETS = (Fraction(1, 10), Fraction(1), Fraction(4))
REPETITIONS = 200
TARGETS = {"county": 0.92, "tract": 0.80, "block": 1.01}

Levels = list[NDArray[np.int64]]


def random_tree(rng: np.random.Generator) -> Hierarchy:
    """Families of uneven sizes, none empty."""
    sizes = list(LEVELS.values())
    starts = []
    for n_parents, n_children in pairwise(sizes):
        cuts = rng.choice(np.arange(1, n_children), n_parents - 1, replace=False)
        starts.append(np.concatenate([[0], np.sort(cuts), [n_children]]))
    return Hierarchy(
        tuple(LEVELS),
        tuple(np.array([f"{i:06d}" for i in range(size)], dtype=CODE) for size in sizes),
        tuple(starts),
        tuple(np.zeros(size, dtype=bool) for size in sizes),
    )


def skewed_population(tree: Hierarchy, rng: np.random.Generator) -> Levels:
    """Four blocks in ten are empty, the others log-normal; totals of all levels."""
    n_blocks = tree.sizes[-1]
    people = np.floor(rng.lognormal(3, 1.2, n_blocks)) * (rng.random(n_blocks) < 0.6)
    return tree.sum_up(people.astype(np.int64))


def topdown(tree: Hierarchy, noisy: Levels) -> Levels:
    counts = [np.maximum(noisy[0], 0)]
    for start, children in zip(tree.child_start, noisy[1:], strict=True):
        counts.append(project_l2_families(children, start, counts[-1]))
    return counts


def gls_topdown(tree: Hierarchy, noisy: Levels, variance: list[float]) -> Levels:
    v = variances_up(tree, variance)
    u = estimates_up(tree, noisy, variance, v)
    counts = [np.maximum(np.rint(u[0]), 0).astype(np.int64)]
    for level, start in enumerate(tree.child_start, start=1):
        counts.append(project_l2_families(u[level], start, counts[-1], 1 / v[level]))
    return counts


def mean_absolute_errors(counts: Levels, truth: Levels) -> NDArray[np.float64]:
    return np.array([np.abs(a - b).mean() for a, b in zip(counts, truth, strict=True)])


def squared_standard_scores(
    tree: Hierarchy, noisy: Levels, variance: list[float], truth: Levels
) -> NDArray[np.float64]:
    """Mean of (error / predicted standard error)^2 of the GLS estimates, per level."""
    estimates, final = gls(tree, noisy, variance)
    triples = zip(estimates, truth, final, strict=True)
    return np.array([np.mean((n - true) ** 2 / var) for n, true, var in triples])


def compare(tree: Hierarchy, truth: Levels, rho: Fraction) -> None:
    laws = [DiscreteGaussian(sum(SHARES) / (2 * rho * share)) for share in SHARES]
    variance = [float(law.variance) for law in laws]
    plain, best, scores = np.zeros(5), np.zeros(5), np.zeros(5)
    for _ in range(REPETITIONS):
        noisy = [true + law.sample(true.size) for true, law in zip(truth, laws, strict=True)]
        plain += mean_absolute_errors(topdown(tree, noisy), truth) / REPETITIONS
        best += mean_absolute_errors(gls_topdown(tree, noisy, variance), truth) / REPETITIONS
        scores += squared_standard_scores(tree, noisy, variance, truth) / REPETITIONS

    print(f"\nrho = {rho}")
    print("level      sigma   topdown  gls_topdown   ratio  at most   s.e. ratio")
    for level, name in enumerate(LEVELS):
        print(
            f"{name:<8}{variance[level] ** 0.5:>8.2f}{plain[level]:>10.3f}{best[level]:>13.3f}"
            f"{best[level] / plain[level]:>8.3f}{TARGETS.get(name, ''):>9}"
            f"{scores[level] ** 0.5:>13.3f}",
            flush=True,
        )


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    sizes = "/".join(f"{size:,}" for size in LEVELS.values())
    print(f"{sizes} nodes, shares {':'.join(map(str, SHARES))}, root measured")
    print(f"mean absolute errors over {REPETITIONS} repetitions; s.e. ratio: empirical over")
    print("predicted standard error of the GLS estimates, 0.95 .. 1.05 below the root")
    rng = np.random.default_rng(2026)
    tree = random_tree(rng)
    truth = skewed_population(tree, rng)
    for rho in BUDGETS:
        compare(tree, truth, rho)


if __name__ == "__main__":
    main()
