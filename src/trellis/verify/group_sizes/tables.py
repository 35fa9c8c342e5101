"""The promises that only a release of group sizes makes. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from trellis.verify.files.run_files import Level, RunFiles

QUANTILES = {
    "quantile_10": 10,
    "quantile_25": 25,
    "median": 50,
    "quantile_75": 75,
    "quantile_90": 90,
}
NAMES = ["groups", "share_of_size_1", "mean_size", *QUANTILES, "gini"]
_COLUMNS = ["geocode", "level", "statistic", "value", "lower", "upper"]


def monotone(run: RunFiles) -> Iterator[str]:
    """Sizes run from 0 without a gap, and cumulative counts grow from 0 to the area's groups."""
    if run.cells != [(str(size),) for size in range(len(run.cells))]:
        yield "plan.json does not list sizes from 0 on"
    for level in run.levels:
        cumulative = np.cumsum(run.counts(level), axis=1)
        if (np.diff(cumulative, axis=1, prepend=0) < 0).any():
            yield f"cumulative counts of level {level.name} fall"
        if level.name in run.exact_totals and (cumulative[:, -1] != _groups(run, level)).any():
            yield f"cumulative counts of level {level.name} do not end at the numbers of groups"


def statistics(run: RunFiles) -> Iterator[str]:
    """The statistics are those of the published tables, inside their intervals."""
    for level in run.levels:
        name = f"release/statistics/{level.name}.parquet"
        table = run.table(name)
        codes = [level.codes[i] for i in level.shown]
        if (
            table.column_names != _COLUMNS
            or table["geocode"].to_pylist() != [code for code in codes for _ in NAMES]
            or table["statistic"].to_pylist() != NAMES * len(codes)
            or set(table["level"].to_pylist()) != {level.name}
        ):
            yield f"{name} does not list the statistics of its areas in order"
            continue
        value, lower, upper = (
            table[column].to_numpy(zero_copy_only=False).astype(float).reshape(-1, len(NAMES))
            for column in ("value", "lower", "upper")
        )
        expected = [
            _statistics(row, int(groups))
            for row, groups in zip(run.counts(level), _groups(run, level), strict=True)
        ]
        if not np.allclose(value, np.array(expected), rtol=1e-9, atol=1e-12, equal_nan=True):
            yield f"{name} has values that the published table does not give"
        if (lower > value + 1e-9).any() or (upper < value - 1e-9).any():
            yield f"{name} has values outside their interval"


def _groups(run: RunFiles, level: Level) -> np.ndarray:
    """The public numbers of groups of the shown areas."""
    exact = run.table(f"measurements/level={level.name}/query=total.parquet")
    return exact["value"].to_numpy()[level.shown]


def _statistics(counts: np.ndarray, groups: int) -> list[float]:
    """One area, by the textbook: sizes in a sorted list, without writing the list out."""
    ends = np.cumsum(counts)
    total = int(ends[-1])
    if total == 0:
        return [groups] + [np.nan] * (len(NAMES) - 1)
    sizes = np.arange(counts.size)
    members = int((sizes * counts).sum())
    quantiles = [
        float(np.searchsorted(ends, ceil(per_cent * total / 100)))
        for per_cent in QUANTILES.values()
    ]
    # Positions in the list that a size takes up, added.
    ranks = counts * (ends - counts) + counts * (counts + 1) / 2
    gini = np.nan
    if members:
        gini = 2 * float((sizes * ranks).sum()) / (total * members) - (total + 1) / total
    return [groups, counts[1] / total, members / total, *quantiles, gini]
