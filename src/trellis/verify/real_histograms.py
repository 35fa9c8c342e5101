"""The promises of histograms whose counts are real estimates. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.histogram_files import Marginal, centres, marginal, row_groups, tables
from trellis.verify.run_files import RunFiles, ancestors
from trellis.verify.tables import TOLERANCE


def real_counts(run: RunFiles) -> Iterator[str]:
    """Counts are the kept estimates, and add up over areas and over cells, in every table."""
    for level, name, stem in tables(run):
        column = run.table(f"{stem}.parquet", ["count"])["count"]
        if column.null_count or not pa.types.is_float64(column.type):
            yield f"{stem}.parquet has counts that are not real numbers"
            continue
        centre = centres(run, level, marginal(run.plan, name), name)
        if not np.array_equal(column.to_numpy(), centre[level.shown].ravel()):
            yield f"{stem}.parquet differs from the estimates"
    yield from _sums_of_areas(run)
    yield from _sums_of_cells(run)


def _sums_of_areas(run: RunFiles) -> Iterator[str]:
    """Tables of one query, each with the next level below that has one."""
    last: dict[str, tuple[int, np.ndarray]] = {}
    index = {level.name: i for i, level in enumerate(run.levels)}
    for level, name, _ in tables(run):
        here = centres(run, level, marginal(run.plan, name), name)
        if name in last:
            upper, expected = last[name]
            total = np.zeros_like(expected)
            np.add.at(total, ancestors(run.levels, index[level.name], upper), here)
            if np.abs(total - expected).max() > TOLERANCE:
                yield (
                    f"{name} of level {level.name} does not add up to level "
                    f"{run.levels[upper].name}"
                )
        last[name] = index[level.name], here


def _sums_of_cells(run: RunFiles) -> Iterator[str]:
    """Tables of one level, each with the coarser ones."""
    for level in run.levels:
        names = [name for of, name, _ in tables(run) if of.name == level.name]
        for fine in names:
            query = marginal(run.plan, fine)
            here = centres(run, level, query, fine)
            for coarse in names:
                other = marginal(run.plan, coarse)
                group = _group_of(query, other)
                if coarse == fine or group is None:
                    continue
                total = np.zeros((len(level), other.width))
                np.add.at(total.T, group, here.T)
                if np.abs(total - centres(run, level, other, coarse)).max() > TOLERANCE:
                    yield f"{fine} of level {level.name} does not add up to {coarse}"


def _group_of(fine: Marginal, coarse: Marginal) -> np.ndarray | None:
    """For each cell of the finer query its cell of the coarser one; None if it has several."""
    group = np.zeros(fine.width, dtype=np.int64)
    group[fine.cell_of] = coarse.cell_of
    return group if np.array_equal(group[fine.cell_of], coarse.cell_of) else None


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
