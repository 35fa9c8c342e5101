"""Constraints that bind unions of cells: how often counts must give way, and what looking costs.

A made-up state in which the totals of all blocks are exact, each facility houses someone, and
nobody lives in a type of facility that a block does not have. Types that share blocks cannot hold
more people together than these blocks. The same measurements are estimated with and without looking
whether areas can hold what they are given, for several amounts of noise. The histogram is small, so
that the ratio is that of an unfavourable case.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from time import process_time

import numpy as np
from _generated_state import LEVELS, hierarchy

from trellis.errors import Infeasible
from trellis.estimate.histograms import estimators
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.model import Schema
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.numerics.feasibility.feasible_below import FeasibleBelow

N_BLOCKS, N_RELEASES = 2_000, 10
SCHEMA = Schema({"hhgq": [f"type{i}" for i in range(8)], "votingage": ["minor", "adult"]})
VARIANCES = (1.0, 30.0, 1000.0)


def population(rng: np.random.Generator) -> np.ndarray:
    """Blocks x cells: households everywhere, and in every tenth block one to three facilities."""
    people = rng.poisson(rng.exponential(20, (N_BLOCKS, 1)) * [0.25, 0.75])
    cells = np.zeros((N_BLOCKS, 8, 2), dtype=np.int64)
    cells[:, 0] = people
    for block in rng.choice(N_BLOCKS, N_BLOCKS // 10, replace=False):
        types = rng.choice(np.arange(1, 8), rng.integers(1, 4), replace=False)
        cells[block, types, 1] = 1 + rng.poisson(30, types.size)
        cells[block, 0] //= 10
    return cells.reshape(N_BLOCKS, -1)


def constraints(leaves: np.ndarray) -> Constraints:
    types = parse_query(SCHEMA, "hhgq").answer(leaves)
    has_one = (types > 0).astype(np.int64)
    has_one[:, 0] = 0
    none = np.where(types > 0, NO_BOUND, 0)
    none[:, 0] = NO_BOUND
    totals = leaves.sum(axis=1, keepdims=True)
    linear = (
        LinearConstraint("totals", "block", "total", Sense.EQUAL, totals),
        LinearConstraint("one each", "block", "hhgq", Sense.AT_LEAST, has_one),
        LinearConstraint("none", "block", "hhgq", Sense.AT_MOST, none),
    )
    return Constraints(linear, np.zeros(SCHEMA.n_cells, dtype=bool))


def releases(variance: float) -> tuple[list[int], list[float], int]:
    """Runs that failed, processor seconds of those that never did, and families that gave way.

    With looking, and without.
    """
    rng = np.random.default_rng(1)
    tree = hierarchy(N_BLOCKS, rng)
    failed, seconds, moved = [0, 0], [0.0, 0.0], [0]
    nearest, of = FeasibleBelow.nearest, FeasibleBelow.of

    def counted(self: FeasibleBelow, *arguments: object) -> object:
        moved[0] += 1
        return nearest(self, *arguments)  # type: ignore[arg-type]

    def blind(*arguments: object) -> FeasibleBelow:
        below = of(*arguments)  # type: ignore[arg-type]
        return replace(below, asks=[np.zeros_like(flags) for flags in below.asks])

    for _ in range(N_RELEASES):
        leaves = population(rng)
        stated = constraints(leaves)
        answers = [
            {"detailed": level + np.rint(rng.normal(0, variance**0.5, level.shape)).astype(int)}
            for level in tree.sum_up(leaves)
        ]
        evidence = EvidenceInMemory(tree, SCHEMA, [{"detailed": variance}] * len(LEVELS), answers)
        took = []
        for way, make in enumerate((of, blind)):
            FeasibleBelow.nearest, FeasibleBelow.of = counted, make  # type: ignore[method-assign]
            begin = process_time()
            try:
                estimators.estimate_gls_topdown(evidence, 0, constraints=stated)
                took.append(process_time() - begin)
            except Infeasible:
                failed[way] += 1
            FeasibleBelow.nearest, FeasibleBelow.of = nearest, of  # type: ignore[method-assign]
        if len(took) == 2:
            seconds = [total + one for total, one in zip(seconds, took, strict=True)]
    return failed, seconds, moved[0]


def main() -> int:
    releases(VARIANCES[0])  # compiles
    print(f"{N_BLOCKS:,} blocks, {SCHEMA.n_cells} cells, {N_RELEASES} releases of each; "
          "exact totals of blocks, types of facilities\n")  # fmt: skip
    columns = ["variance", "failed without", "failed with", "gave way", "CPU s", "ratio"]
    print("".join(f"{name:>16}" for name in columns))
    for variance in VARIANCES:
        failed, seconds, moved = releases(variance)
        both = f"{seconds[0]:.2f}/{seconds[1]:.2f}"
        row = [variance, failed[1], failed[0], moved, both, f"{seconds[0] / seconds[1]:.2f}"]
        print("".join(f"{value!s:>16}" for value in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
