"""How much more accurate `gls_topdown` is than `topdown`, on the same measurements.

A made-up state with the budget and strategy of the 2020 redistricting persons file is measured
several times. Each time both methods estimate the same measurements: the ratio of their mean
absolute errors against the truth is paired. `python benchmarks/histogram_accuracy.py BLOCKS SEEDS`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import trellis
from trellis.model.queries import parse_query
from trellis.storage.histogram_estimates import read_histogram_estimates
from trellis.workflow.api import measure
from trellis.workflow.confidential_histograms import read_histograms
from trellis.workflow.histogram_demo import write_histogram_demo
from trellis.workflow.prepare import prepare
from trellis.workflow.progress import Silent
from trellis.workflow.public_half import finish, reestimate

QUERIES = ("total", "hhgq", "votingage", "hispanic * cenrace", "detailed")
GOALS = {"county": 0.75, "tract": 0.85, "block_group": 0.93}


def main() -> int:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    n_seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_histogram_demo(folder, n_blocks)
        text = (folder / "spec.yaml").read_text().replace("ledger: {limit: {rho: 6}}", "")
        (folder / "spec.yaml").write_text(text)
        spec = trellis.Spec.load(folder / "spec.yaml")
        prepared = prepare(spec)
        hierarchy, plan = prepared.hierarchy, prepared.plan
        truth = read_histograms(prepared, spec.resolve("data/people.parquet")).by_level(hierarchy)
        errors = np.zeros((n_seeds, 2, hierarchy.n_levels, len(QUERIES)))
        for seed in range(n_seeds):
            run = measure(spec, folder / f"run{seed}")
            reestimate(run, "topdown", folder / f"plain{seed}", Silent())
            finish(run, Silent())
            for method, name in enumerate((f"plain{seed}", f"run{seed}")):
                found = read_histogram_estimates(folder / name / "estimates", plan, hierarchy)
                for level, counts in enumerate(found.counts):
                    for q, query in enumerate(QUERIES):
                        parsed = parse_query(plan.schema, query)
                        gap = counts.marginal(parsed.cell_of, parsed.n_cells)
                        gap -= truth[level].marginal(parsed.cell_of, parsed.n_cells)
                        errors[seed, method, level, q] = np.abs(gap).mean()
    print(
        f"{n_blocks:,} blocks, {n_seeds} paired measurements; mean absolute error of topdown, and"
    )
    print("ratio gls_topdown / topdown with its standard error over the pairs\n")
    print(f"{'level':<12}" + "".join(f"{query:>26}" for query in QUERIES))
    for level, name in enumerate(plan.levels):
        row = f"{name:<12}"
        for q in range(len(QUERIES)):
            plain, gls = errors[:, 0, level, q], errors[:, 1, level, q]
            if plain.mean() == 0:
                row += f"{'exact':>26}"
                continue
            ratio = gls.mean() / plain.mean()
            spread = (gls - ratio * plain).std(ddof=1) / np.sqrt(n_seeds) / plain.mean()
            row += f"{plain.mean():>10.3f} {ratio:>7.3f} ± {spread:.3f}"
        print(row)
    for name, goal in GOALS.items():
        level, q = plan.levels.index(name), QUERIES.index("hispanic * cenrace")
        ratio = errors[:, 1, level, q].mean() / errors[:, 0, level, q].mean()
        verdict = "reached" if ratio <= goal else "missed"
        print(f"hispanic x race, {name}: {ratio:.3f}, goal at most {goal}: {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
