"""How often published intervals contain the true count, level by level: repeated releases.

Run `python benchmarks/interval_coverage.py`. The demo's state, and Delaware in 2010 if
../shared/data has it, are measured and estimated again and again; each time all intervals are
compared with the truth. A level passes if between 88 and 97 of 100 intervals of 90 % confidence
contain it, over all repetitions; with fewer than 30 areas it is shown and not judged. Beside it:
what rounding the ends outwards or inwards would give.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.estimate.methods import estimate
from trellis.measure import measure_counts
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.results.estimates import Estimates
from trellis.privacy.bits import OsRandom
from trellis.privacy.ledger import Claim
from trellis.release.tables.intervals import interval, interval_factor
from trellis.samples.demo import write_demo
from trellis.spec import Spec
from trellis.workflow.confidential.measuring import tabulate
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.sources import resolve_source

ROOT = Path(__file__).parents[1]
DELAWARE = ROOT.parent / "shared" / "data" / "census_blocks_2010_de.parquet"
REPETITIONS = 20
FEWEST, LEAST, MOST = 30, 0.88, 0.97


def covered(truth: NDArray, lower: NDArray, upper: NDArray) -> float:
    return float(((lower <= truth) & (truth <= upper)).mean())


def one_release(prepared: Prepared, truth: TrueCounts) -> NDArray[np.float64]:
    """Levels x rules: published, rounded outwards, rounded inwards."""
    plan, tree = prepared.plan, prepared.hierarchy
    measured = measure_counts(
        plan, tree, truth, ChargedNoise(plan, Claim("run", "token", plan.privacy), OsRandom())
    )
    estimates = estimate(measured, 0)
    factor = interval_factor(plan)
    levels = tree.sum_up(truth.leaves)
    return np.array([_rules(estimates, level, x, factor) for level, x in enumerate(levels)])


def _rules(estimates: Estimates, level: int, truth: NDArray, factor: float) -> list[float]:
    assert estimates.centre is not None
    assert estimates.std_error is not None
    counts, centre = estimates.counts[level], estimates.centre[level]
    half = factor * estimates.std_error[level]
    found = [covered(truth, *interval(counts, centre, estimates.std_error[level], factor))]
    for low, high in (
        (np.floor(centre - half + 1e-9), np.ceil(centre + half - 1e-9)),
        (np.ceil(centre - half - 1e-9), np.floor(centre + half + 1e-9)),
    ):
        ends = np.minimum(np.maximum(low, 0), counts), np.maximum(np.maximum(high, 0), counts)
        found.append(covered(truth, *ends))
    return found


def show(name: str, prepared: Prepared, truth: TrueCounts) -> bool:
    found = np.mean([one_release(prepared, truth) for _ in range(REPETITIONS)], axis=0)
    print(f"\n{name}, confidence {prepared.plan.confidence}, {REPETITIONS} releases")
    print(f"{'level':<14}{'areas':>9}{'covered':>10}{'outwards':>10}{'inwards':>10}")
    holds = True
    for level, areas, (now, out, inward) in zip(
        prepared.plan.levels, prepared.plan.areas, found, strict=True
    ):
        judged = "" if areas < FEWEST else ("ok" if LEAST <= now <= MOST else "MISSED")
        holds &= judged != "MISSED"
        print(f"{level:<14}{areas:>9,}{now:>10.3f}{out:>10.3f}{inward:>10.3f}  {judged}")
    return holds


def main() -> int:
    print(f"{platform.platform()}, {os.cpu_count()} cores")
    with TemporaryDirectory() as folder:
        write_demo(Path(folder))
        spec = Spec.load(Path(folder) / "spec.yaml")
        prepared = prepare(spec)
        source = resolve_source(spec, spec.data.source, None, "data.source")
        holds = show("demo", prepared, tabulate(prepared, source))
    if DELAWARE.exists():
        spec = Spec.load(ROOT / "examples" / "delaware" / "spec.yaml")
        blocks = pq.read_table(DELAWARE)
        prepared = prepare(spec, Frames(hierarchy=blocks))
        holds &= show("Delaware 2010", prepared, tabulate(prepared, blocks))
    else:
        print(f"\nDelaware was left out: there is no {DELAWARE}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
