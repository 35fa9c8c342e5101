"""Mean absolute errors of `gls_topdown` over `topdown`: generated state, strategy of 2020.

Run `python benchmarks/histogram_accuracy.py [blocks]`. The state's total is published exactly, as
it was in 2020. Both methods see the same noise, in 8 runs; the interval is that of a paired ratio.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from _generated_state import LEVELS, SCHEMA, State, generated_state, with_noise

from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown
from trellis.model.queries import parse_query

RUNS = 8
SHOWN = ("total", "hispanic * cenrace", "votingage", "hhgq", "detailed")
TARGETS = {"county": 0.75, "tract": 0.85, "block_group": 0.93}


def errors(counts, state: State) -> np.ndarray:
    """Levels x queries."""
    out = np.zeros((len(LEVELS), len(SHOWN)))
    for level in range(len(LEVELS)):
        n_nodes = state.hierarchy.sizes[level]
        for first in range(0, n_nodes, 4096):
            last = min(first + 4096, n_nodes)
            miss = counts[level].dense(first, last) - state.truth[level][first:last]
            for i, name in enumerate(SHOWN):
                query = parse_query(SCHEMA, name)
                answer = query.answer(miss)
                out[level, i] += np.abs(answer).sum() / (n_nodes * query.n_cells)
    return out


def main() -> None:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 12_000
    state = generated_state(n_blocks, seed=0, noise_seed=0)
    state.measured[LEVELS.index("state")]["total"] = 0.0
    found = np.zeros((RUNS, 2, len(LEVELS), len(SHOWN)))
    began = perf_counter()
    for run in range(RUNS):
        noisy = with_noise(state, run)
        for i, estimate in enumerate((estimate_topdown, estimate_gls_topdown)):
            found[run, i] = errors(estimate(noisy, run).counts, noisy)
    print(f"areas by level: {dict(zip(LEVELS, state.hierarchy.sizes, strict=True))}, {RUNS} runs,")
    print(f"{perf_counter() - began:.0f} s; error of gls_topdown over that of topdown, +- 2 s.e.")
    print(f"{'':<13}" + "".join(f"{name:>22}" for name in SHOWN) + f"{'target h x r':>14}")
    for level, name in enumerate(LEVELS):
        row = f"{name:<13}"
        for i in range(len(SHOWN)):
            plain, gls = found[:, 0, level, i], found[:, 1, level, i]
            if plain.mean() == 0:
                row += f"{'exact':>22}"
                continue
            ratio = gls.mean() / plain.mean()
            spread = np.std(gls - ratio * plain, ddof=1) / plain.mean() / np.sqrt(RUNS)
            row += f"{ratio:>14.3f} +-{2 * spread:>5.3f}"
        print(row + f"{TARGETS.get(name, ''):>14}")


if __name__ == "__main__":
    main()
