"""Mean absolute errors with `passes: [hhgq]` over those without: generated state, `gls_topdown`.

Run `python benchmarks/histogram_passes.py [blocks]`. Two strategies: that of 2020, where `hhgq` has
about a thousandth of each level, and one that gives it a tenth. With and without the pass the noise
is the same, in 8 runs; the interval is that of a paired ratio.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
from _generated_state import LEVEL_SHARES, LEVELS, RHO, generated_state, with_noise
from _paired_errors import SHOWN, mean_absolute_errors, print_ratios

from trellis.estimate.histograms.estimators import estimate_gls_topdown

RUNS = 8
A_TENTH = {"total": "2/5", "hhgq": "1/10", "hispanic * cenrace": "1/4", "detailed": "1/4"}


def with_a_tenth(level: str) -> dict[str, float]:
    """The variance of the noise on each query of a level."""
    rho = RHO * Fraction(LEVEL_SHARES[level], 4099)
    return {query: float(1 / (rho * Fraction(share))) for query, share in A_TENTH.items()}


def main() -> None:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 6_000
    state = generated_state(n_blocks, seed=0, noise_seed=0)
    strategies = {
        "strategy of 2020": state.measured,
        "a tenth of each level for hhgq": [with_a_tenth(level) for level in LEVELS],
    }
    for title, measured in strategies.items():
        planned = [dict(level) for level in measured]
        planned[LEVELS.index("state")]["total"] = 0.0
        found = np.zeros((2, RUNS, len(LEVELS), len(SHOWN)))
        for run in range(RUNS):
            noisy = with_noise(replace(state, measured=planned), run)
            for i, passes in enumerate(((), ("hhgq",))):
                counts = estimate_gls_topdown(noisy, run, passes=passes).counts
                found[i, run] = mean_absolute_errors(counts, noisy)
        print(f"{title}, {n_blocks:,} blocks, {RUNS} runs: error with the pass over that without")
        print_ratios(found[1], found[0])


if __name__ == "__main__":
    main()
