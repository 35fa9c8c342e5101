"""Planning of histograms: optimal shares beside those of production; errors beside expected."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from trellis.planning.allocation.data_free import (
    Aim,
    error_and_slopes,
    optimal_budgets,
    weighted_error,
)
from trellis.planning.allocation.query_choice import table_aims
from trellis.planning.forecast.expected_variance import VarianceModel
from trellis.planning.forecast.outlook import Outlook
from trellis.samples.redistricting import spec_text, write_histogram_data
from trellis.spec import Spec
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.outlook.plan_report import plan_report
from trellis.workflow.preparing.prepare import prepare


def show_histograms(n_blocks: int) -> bool:
    """The redistricting file of a made-up state: optimal shares beside those of production."""
    with TemporaryDirectory() as folder:
        write_histogram_data(Path(folder), n_blocks)
        (Path(folder) / "spec.yaml").write_text(spec_text(), encoding="utf-8")
        spec = Spec.load(Path(folder) / "spec.yaml")
        ready = prepare(spec)
    tree, plan = ready.hierarchy, ready.plan
    assert plan.design is not None
    outlook = Outlook.of(plan, tree)
    assert outlook is not None
    began = perf_counter()
    n_lines = len(outlook.errors())
    print(f"\nHistograms: {n_blocks:,} blocks, {len(outlook.scene.slots)} queries; expected errors "
          f"of {n_lines} tables in {perf_counter() - began:.2f} s")  # fmt: skip
    mean = {level: Fraction(1, n) for level, n in zip(tree.level_names, tree.areas, strict=True)}
    weightings = {
        "sums": None,
        "mean by level": mean,
        "totals and race": {"default": {"votingage * hispanic * cenrace": Fraction(0)}},
    }
    print("  weights".ljust(22) + "production / optimal".rjust(22) + "largest gain left".rjust(20)
          + "seconds".rjust(10))  # fmt: skip
    fine = True
    for name, weights in weightings.items():
        aims = table_aims(tree, plan.schema, plan.design.tables, weights, None)
        model = outlook.scene.model()
        began = perf_counter()
        best = optimal_budgets(model, aims, outlook.total)
        seconds = perf_counter() - began
        ratio = weighted_error(model, aims, outlook.budgets) / weighted_error(model, aims, best)
        left = largest_gain(model, aims, best)
        fine &= ratio >= 1 and left < 1e-3
        print(f"  {name:20}{ratio:22.3f}{left:20.1e}{seconds:10.1f}")
    return fine


def largest_gain(model: VarianceModel, aims: tuple[Aim, ...], budgets: np.ndarray) -> float:
    """By how much the error may be above the least one, as a part of it: it is convex."""
    error, slopes = error_and_slopes(model, aims)(budgets)
    return float((-slopes / budgets).max() * budgets.sum() + slopes.sum()) / error


def show_simulated_histogram() -> bool:
    """What is expected of every table beside a few simulated releases of a small state."""
    with TemporaryDirectory() as folder:
        write_histogram_data(Path(folder), 300)
        text = spec_text().replace("people.parquet", "elsewhere.parquet")
        (Path(folder) / "spec.yaml").write_text(text, encoding="utf-8")
        spec = Spec.load(Path(folder) / "spec.yaml")
        prior = PriorSpec(source="data/people.parquet")
        report = plan_report(spec, releases=4, prior=prior)
    assert report.simulation is not None
    print("\n  table".ljust(48) + "simulated / expected".rjust(22))
    fine = True
    for line in report.simulation.levels:
        expected = report.root_mean_squares[line.name]
        if expected > 0 and line.cells >= 2000:
            ratio = (line.linear_root_mean_square or 0) / expected
            fine &= abs(ratio - 1) < 0.1
            print(f"  {line.name:46}{ratio:21.4f}")
    return fine
