"""Mean absolute errors of `gls_topdown` over `topdown`: generated state, strategy of 2020.

Run `python benchmarks/histogram_accuracy.py [blocks]`. The state's total is published exactly, as
it was in 2020. Both methods see the same noise, in 8 runs; the interval is that of a paired ratio.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from _generated_state import LEVELS, generated_state, with_noise
from _paired_errors import SHOWN, mean_absolute_errors, print_ratios

from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown

RUNS = 8
TARGETS = {"county": 0.75, "tract": 0.85, "block_group": 0.93}


def main() -> None:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 12_000
    state = generated_state(n_blocks, seed=0, noise_seed=0)
    state.measured[LEVELS.index("state")]["total"] = 0.0
    found = np.zeros((2, RUNS, len(LEVELS), len(SHOWN)))
    began = perf_counter()
    for run in range(RUNS):
        noisy = with_noise(state, run)
        for i, estimate in enumerate((estimate_topdown, estimate_gls_topdown)):
            found[i, run] = mean_absolute_errors(estimate(noisy, run).counts, noisy)
    print(f"areas by level: {dict(zip(LEVELS, state.hierarchy.sizes, strict=True))}, {RUNS} runs,")
    print(f"{perf_counter() - began:.0f} s; error of gls_topdown over that of topdown, +- 2 s.e.;")
    print("last column: target for hispanic * cenrace")
    print_ratios(found[1], found[0], TARGETS)


if __name__ == "__main__":
    main()
