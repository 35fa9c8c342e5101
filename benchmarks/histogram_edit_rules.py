"""What it costs to enforce `minor requires adult`: generated state, strategy of 2020.

Run `python benchmarks/histogram_edit_rules.py [blocks]`. No block breaks the rule in truth. Both
estimates see the same noise, in 4 runs; times are of the processor, with one thread. Two states:
one without bounds, where every area whose parent keeps the rule keeps it, and one with the types of
facilities of every block as bounds and the total of every county exact. Then small families whose
rules need what is scarce: the cost of the repair by that of the best table (integer program).
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import numpy as np
from _generated_state import LEVELS, SCHEMA, State, generated_state, with_noise
from _paired_errors import SHOWN, mean_absolute_errors

from trellis.estimate.histograms.estimators import estimate_gls_topdown
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.model.tables.rules import edit_rule_cells

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the integer program
from rule_families import over_the_best, random_family

RUNS = 4
SCARCE = 100
RULE = edit_rule_cells(SCHEMA, (), "votingage = minor requires votingage = adult")


def without_lonely_minors(state: State) -> State:
    """Minors in blocks without adults become adults."""
    blocks = state.truth[-1].copy()
    given, needed = RULE
    lonely = ~blocks[:, needed].any(axis=1)
    blocks[np.ix_(lonely, needed)] = blocks[np.ix_(lonely, given)]
    blocks[np.ix_(lonely, given)] = 0
    truth = [level.astype(np.int32) for level in state.hierarchy.sum_up(blocks.astype(np.int32))]
    return State(state.hierarchy, SCHEMA, state.measured, (), [*truth[:-1], blocks])


def facilities(state: State) -> Constraints:
    """Somebody in every type that a block has, nobody in the others but for households."""
    there = parse_query(SCHEMA, "hhgq").answer(state.truth[-1].astype(np.int64)) > 0
    there[:, 0] = False
    most = np.where(there, NO_BOUND, 0)
    most[:, 0] = NO_BOUND
    linear = (
        LinearConstraint("some", "block", "hhgq", Sense.AT_LEAST, there.astype(np.int64)),
        LinearConstraint("none", "block", "hhgq", Sense.AT_MOST, most),
    )
    return Constraints(linear, np.zeros(SCHEMA.n_cells, dtype=bool))


def broken(counts) -> np.ndarray:
    """Areas that break the rule, by level."""
    out = []
    for level in counts:
        given, needed = (level.marginal(side.astype(np.int32), 2)[:, 1] > 0 for side in RULE)
        out.append((given & ~needed).sum())
    return np.array(out)


def compare(state: State, constraints: Constraints | None) -> None:
    found, missed = np.zeros((RUNS, 2, len(LEVELS))), np.zeros((RUNS, 2, len(LEVELS), len(SHOWN)))
    took = np.zeros((RUNS, 2))
    estimate_gls_topdown(state, 0, constraints=constraints, edit_rules=[RULE])
    for run in range(RUNS):
        noisy = with_noise(state, run)
        for i, rules in enumerate(((), [RULE])):
            began = process_time()
            estimates = estimate_gls_topdown(
                noisy, run, constraints=constraints, edit_rules=rules, workers=1
            )
            took[run, i] = process_time() - began
            found[run, i] = broken(estimates.counts)
            missed[run, i] = mean_absolute_errors(estimates.counts, noisy)
    print(f"{'':<13}{'areas':>8}{'broken':>9}{'left':>7}   error, enforced over audited")
    print(f"{'':<40}" + "".join(f"{name:>20}" for name in SHOWN))
    for level, name in enumerate(LEVELS):
        before, after = found[:, :, level].mean(axis=0)
        row = f"{name:<13}{state.hierarchy.sizes[level]:>8,}{before:>9,.1f}{after:>7,.1f}   "
        for i in range(len(SHOWN)):
            audited, enforced = missed[:, :, level, i].mean(axis=0)
            row += f"{'exact':>20}" if audited == 0 else f"{enforced / audited:>20.4f}"
        print(row)
    times = took.sum(axis=0)
    print(f"processor time, enforced over audited: {times[1] / times[0]:.2f}\n", flush=True)


def compare_with_the_best() -> None:
    families = [random_family(np.random.default_rng([7, seed])) for seed in range(SCARCE)]
    families[0].rounded(keep_rules=True)
    took = np.zeros(2)
    for i, keep_rules in enumerate((False, True)):
        began = process_time()
        for family in families:
            family.rounded(keep_rules=keep_rules)
        took[i] = process_time() - began
    ratios = np.array([ratio for ratio in map(over_the_best, families) if ratio is not None])
    print(f"{ratios.size} of {SCARCE} small families with scarce categories break a rule")
    print(f"cost over best: mean {ratios.mean():.4f}, most {ratios.max():.4f}")
    before, after = 1000 * took / SCARCE
    print(f"milliseconds a family: {before:.2f} without rules, {after:.2f} with them")


def main() -> None:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    state = generated_state(n_blocks, seed=0, noise_seed=0)
    state.measured[LEVELS.index("state")]["total"] = 0.0
    state = with_noise(without_lonely_minors(state), 0)
    print(f"{RUNS} runs; areas that break the rule, in the mean\n")
    print("without bounds")
    compare(state, None)
    print("with facilities in every block, and exact totals of counties")
    state.measured[LEVELS.index("county")]["total"] = 0.0
    compare(with_noise(state, 0), facilities(state))
    compare_with_the_best()


if __name__ == "__main__":
    main()
