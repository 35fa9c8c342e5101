"""The promise about intervals of statistics, from the estimates that are proven elsewhere.

With the public number of groups G, largest size N, estimates c_s of the groups up to size s, and f
standard errors on either side: the share of size 1 has the interval of that count, divided by G;
the mean size is N - (c_0 + .. + c_{N-1}) / G; a quantile q may be any size s for which c_s may
reach q G and c_{s-1} may fall short of it. Every interval contains its value. Numbers of groups are
exact, and the Gini coefficient has no interval, nor has anything in an area without groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trellis.verify.counts.measured_tree import exact_totals
from trellis.verify.counts.recomputed import estimated, is_too_old
from trellis.verify.counts.tables import TOLERANCE, interval_factor
from trellis.verify.files.run_files import RunFiles
from trellis.verify.group_sizes.tables import NAMES, QUANTILES


@dataclass(frozen=True, slots=True, eq=False)
class Areas:
    """The shown areas of a level: counts, estimates and errors by size, numbers of groups."""

    counts: np.ndarray
    centre: np.ndarray
    std_error: np.ndarray
    groups: np.ndarray
    factor: float
    is_cumulative: bool

    @property
    def largest(self) -> int:
        return self.counts.shape[1] - 1

    def reach(self, terms: float | np.ndarray) -> np.ndarray:
        """Half the width of an interval for a sum of so many measured numbers."""
        return self.factor * self.std_error[:, :1] * np.sqrt(terms)


def statistic_intervals(run: RunFiles) -> Iterator[str]:
    """Intervals of statistics follow from the estimates and their standard errors."""
    if is_too_old(run):
        return
    exact = exact_totals(run)
    for level in run.levels:
        name = f"release/statistics/{level.name}.parquet"
        table = run.table(name, ["value", "lower", "upper"])
        value, lower, upper = (
            column.to_numpy(zero_copy_only=False).astype(float).reshape(-1, len(NAMES))
            for column in table.columns
        )
        counts, centre, std_error = (
            estimated(run, level.name, column)[level.shown]
            for column in ("count", "centre", "std_error")
        )
        groups, factor = exact[level.name][level.shown, 0], interval_factor(run.plan)
        is_cumulative = run.plan["method"].startswith("cumulative")
        areas = Areas(counts, centre, std_error, groups, factor, is_cumulative)
        for place, statistic in enumerate(NAMES):
            ends = lower[:, place], upper[:, place]
            if not _holds(areas, statistic, value[:, place], ends):
                yield f"{name} has intervals of {statistic} that the estimates do not give"


Ends = tuple[np.ndarray, np.ndarray]


def _holds(areas: Areas, statistic: str, value: np.ndarray, ends: Ends) -> bool:
    """Rounding may decide either way where it matters, so there are two answers, close together."""
    if statistic == "groups":
        return all(np.array_equal(end, areas.groups) for end in ends)
    is_empty = areas.counts.sum(axis=1) == 0
    if statistic == "gini":
        return all(bool(np.isnan(end).all()) for end in ends)
    is_blank = is_empty
    if statistic in ("share_of_size_1", "mean_size"):
        is_blank = is_empty | (areas.groups == 0)
    if not all(np.isnan(end[is_blank]).all() for end in ends):
        return False
    known = ~is_empty & (areas.groups > 0)
    answers = [_interval(areas, statistic, doubt) for doubt in (-TOLERANCE, TOLERANCE)]
    found = zip(*answers, strict=True)
    for end, wider, both in zip(ends, (np.minimum, np.maximum), found, strict=True):
        low, high = np.sort([wider(each, value)[known] for each in both], axis=0)
        slack = 1e-9 * (1 + np.abs(high))
        if not ((end[known] >= low - slack) & (end[known] <= high + slack)).all():
            return False
    return True


def _interval(areas: Areas, statistic: str, doubt: float) -> Ends:
    if statistic == "share_of_size_1":
        return _share(areas, doubt)
    if statistic == "mean_size":
        return _mean(areas)
    return _quantile(areas, QUANTILES[statistic], doubt)


def _share(areas: Areas, doubt: float) -> Ends:
    half, count = areas.factor * areas.std_error[:, 1] + 0.5, areas.counts[:, 1]
    lower = np.clip(np.ceil(areas.centre[:, 1] - half + doubt), 0, areas.groups)
    upper = np.clip(np.floor(areas.centre[:, 1] + half + doubt), 0, areas.groups)
    groups = np.maximum(areas.groups, 1)
    return np.minimum(lower, count) / groups, np.maximum(upper, count) / groups


def _mean(areas: Areas) -> Ends:
    """The mean is a sum over all cumulative counts, or over all counts times their sizes."""
    size = np.arange(areas.largest + 1)
    half = areas.reach(areas.largest if areas.is_cumulative else (size**2).sum())[:, 0]
    members, groups = areas.centre @ size, np.maximum(areas.groups, 1)
    lower, upper = (members - half) / groups, (members + half) / groups
    return np.maximum(lower, 0), np.minimum(upper, areas.largest)


def _quantile(areas: Areas, per_cent: int, doubt: float) -> Ends:
    cumulative = np.cumsum(areas.centre, axis=1)[:, :-1]
    half = areas.reach(1.0 if areas.is_cumulative else np.arange(1, areas.largest + 1))
    wanted = (per_cent * areas.groups / 100 + doubt)[:, np.newaxis]
    size = np.arange(areas.largest)
    lower = np.where(cumulative + half >= wanted, size, areas.largest).min(axis=1)
    upper = np.where(cumulative - half < wanted, size + 1, 0).max(axis=1)
    return lower.astype(float), upper.astype(float)
