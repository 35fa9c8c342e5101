"""The promises of histograms whose counts are real estimates. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.counts.tables import TOLERANCE
from trellis.verify.files.histogram_files import centres, marginal, row_groups, tables
from trellis.verify.files.run_files import RunFiles, ancestors


def real_counts(run: RunFiles) -> Iterator[str]:
    """Counts are the kept estimates, in every table."""
    for level, name, stem in tables(run):
        column = run.table(f"{stem}.parquet", ["count"])["count"]
        if column.null_count or not pa.types.is_float64(column.type):
            yield f"{stem}.parquet has counts that are not real numbers"
            continue
        centre = centres(run, level, marginal(run.plan, name), name)
        if not np.array_equal(column.to_numpy(), centre[level.shown].ravel()):
            yield f"{stem}.parquet differs from the estimates"


def real_totals(run: RunFiles) -> Iterator[str]:
    """What was to be published exactly is published exactly: every table adds up to it."""
    index = {level.name: i for i, level in enumerate(run.levels)}
    exact = [q for q in run.plan["queries"] if q["noise"] is None]
    for q in exact:
        place = f"measurements/level={q['level']}/query={q['query']},exact/part-0.parquet"
        promised = np.concatenate([t["value"].to_numpy() for t in row_groups(run, place)])
        top = index[q["level"]]
        for level, name, stem in tables(run):
            if index[level.name] < top:
                continue
            cells = centres(run, level, marginal(run.plan, name), name).sum(axis=1)
            total = np.zeros(promised.size)
            np.add.at(total, ancestors(run.levels, index[level.name], top), cells)
            if np.abs(total - promised).max() > TOLERANCE:
                yield f"{stem}.parquet does not add up to the exact totals of {q['level']}"
    if [q["level"] for q in exact] != run.plan["unprotected_totals"]:
        yield "plan.json measures other exact totals than it lists as unprotected"


def no_rules(run: RunFiles) -> Iterator[str]:
    """Rules, bounds and microdata, which need whole counts, are neither planned nor there."""
    planned, output = run.plan["histogram"], run.spec.get("output", {})
    for key in ("structural_zeros", "edit_rules", "passes", "microdata"):
        if planned[key] or run.spec.get(key) or output.get(key):
            yield f"{key} are planned, and the method has no use for them"
    if run.spec.get("constraints"):
        yield "constraints are stated, and the method has no use for them"
    for name in ("release/microdata.parquet", "release/edit_rules.json", "constraints.parquet"):
        if (run.path / name).exists():
            yield f"{name} is there and was not planned"
    for level in run.levels:
        if (run.path / f"estimates/level={level.name}.parquet").exists():
            yield f"estimates of level {level.name} have whole counts beside the real ones"
