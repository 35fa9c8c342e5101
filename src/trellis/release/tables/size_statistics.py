r"""Statistics of group sizes that users ask for, with intervals where they can be had.

Values come from the published table of an area: n_s groups of size s, c_s of at most that size, T
in all. Intervals come from the best linear unbiased estimates and the public number of groups G:

    share of size 1    the interval of n_1, divided by G
    mean size          (N G - sum_{s<N} c_s) / G, whose noise is that of the c_s
    quantile q         the least s with c_s >= q G: all sizes that the intervals of c_{s-1} and c_s
                       leave possible. Each can mislead to one side only, so the confidence holds.

The Gini coefficient, sum_{s<N} c_s (T - c_s) / (T sum_s s n_s), has no interval here. Intervals
contain the published value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates, Floats
from trellis.model.tables.carried_bounds import Range
from trellis.privacy.group_size_changes import SizeQuery
from trellis.release.tables.intervals import interval, interval_factor
from trellis.storage.codes import level_codes
from trellis.storage.parquet import repeated

QUANTILES = {
    "quantile_10": (1, 10),
    "quantile_25": (1, 4),
    "median": (1, 2),
    "quantile_75": (3, 4),
    "quantile_90": (9, 10),
}
NAMES = ("groups", "share_of_size_1", "mean_size", *QUANTILES, "gini")

Statistic = tuple[Floats, Floats, Floats]
"""Values with the ends of their intervals; NaN where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class AreaSizes:
    """The areas of one level: published counts, unbiased estimates and public numbers of groups."""

    counts: NDArray[np.int64]
    centre: Floats
    std_error: Floats
    groups: NDArray[np.int64]
    factor: float
    is_cumulative: bool

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.arange(self.counts.shape[1])

    @property
    def variance(self) -> Floats:
        """Of one measured number: a count, or a cumulative one."""
        return self.std_error[:, 0] ** 2


def statistics_table(
    plan: Plan, estimates: Estimates, groups: Sequence[NDArray[np.int64]], level: int
) -> pa.Table:
    """Columns geocode, level, statistic, value, lower, upper; an area's statistics together."""
    hierarchy = estimates.hierarchy
    shown = np.flatnonzero(~hierarchy.passes_through[level])
    found = level_statistics(_areas(plan, estimates, groups, level, shown))
    n_rows = shown.size * len(NAMES)
    names = pa.array(np.tile(np.arange(len(NAMES), dtype=np.int32), shown.size))
    ends = np.stack([np.stack(found[name]) for name in NAMES])  # statistics x 3 x areas
    value, lower, upper = ends.transpose(1, 2, 0).reshape(3, -1)
    return pa.table(
        {
            "geocode": level_codes(hierarchy, level).take(pa.array(np.repeat(shown, len(NAMES)))),
            "level": repeated(plan.levels[level], n_rows, pa.string()),
            "statistic": pa.DictionaryArray.from_arrays(names, pa.array(NAMES, pa.string())),
            "value": pa.array(value, from_pandas=True),
            "lower": pa.array(lower, from_pandas=True),
            "upper": pa.array(upper, from_pandas=True),
        }
    )


def _areas(
    plan: Plan,
    estimates: Estimates,
    groups: Sequence[NDArray[np.int64]],
    level: int,
    shown: NDArray[np.intp],
) -> AreaSizes:
    assert estimates.centre is not None
    assert estimates.std_error is not None
    return AreaSizes(
        estimates.counts[level][shown].astype(np.int64),
        estimates.centre[level][shown],
        estimates.std_error[level][shown],
        groups[level][shown],
        interval_factor(plan),
        plan.cell_query == SizeQuery.CUMULATIVE,
    )


def level_statistics(areas: AreaSizes) -> dict[str, Statistic]:
    """All statistics by name, one number per area; nothing is known of an area without groups."""
    exact = areas.groups.astype(np.float64)
    total = areas.counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "groups": (exact, exact, exact),
            "share_of_size_1": _share(areas, total),
            "mean_size": _mean(areas, total),
            **{name: _quantile(areas, total, *q) for name, q in QUANTILES.items()},
            "gini": _gini(areas, total),
        }
    return {name: _blanked(statistic, total == 0, name) for name, statistic in found.items()}


def _share(areas: AreaSizes, total: NDArray[np.int64]) -> Statistic:
    value = areas.counts[:, 1] / total
    one = areas.counts[:, 1], areas.centre[:, 1], areas.std_error[:, 1]
    lower, upper = interval(*one, areas.factor, Range(np.zeros(()), areas.groups.astype(float)))
    return _containing(value, _per_group(areas, lower), _per_group(areas, upper))


def _mean(areas: AreaSizes, total: NDArray[np.int64]) -> Statistic:
    most = areas.sizes[-1]
    terms = most if areas.is_cumulative else (areas.sizes**2).sum()
    centre = _per_group(areas, areas.centre @ areas.sizes)
    half = _per_group(areas, areas.factor * np.sqrt(terms * areas.variance))
    value = areas.counts @ areas.sizes / total
    return _containing(value, np.maximum(centre - half, 0), np.minimum(centre + half, most))


def _quantile(areas: AreaSizes, total: NDArray[np.int64], top: int, bottom: int) -> Statistic:
    value = _first(bottom * np.cumsum(areas.counts, axis=1) >= (top * total)[:, np.newaxis])
    cumulative = np.cumsum(areas.centre, axis=1)[:, :-1]
    terms = 1 if areas.is_cumulative else areas.sizes[1:]
    half = areas.factor * np.sqrt(areas.variance[:, np.newaxis] * terms)
    wanted = (top * areas.groups / bottom)[:, np.newaxis]
    always = np.ones((len(total), 1), dtype=bool)
    lower = _first(np.hstack([cumulative + half >= wanted, always]))
    # The last s whose c_{s-1} may still be below: counted from the other end.
    upper = areas.sizes[-1] - _first(np.hstack([always, cumulative - half < wanted])[:, ::-1])
    return _containing(value, lower, upper)


def _gini(areas: AreaSizes, total: NDArray[np.int64]) -> Statistic:
    cumulative = np.cumsum(areas.counts, axis=1)[:, :-1].astype(np.float64)
    below = (cumulative * (total[:, np.newaxis] - cumulative)).sum(axis=1)
    value = below / (total * (areas.counts @ areas.sizes))
    nothing = np.full_like(value, np.nan)
    return value, nothing, nothing


def _per_group(areas: AreaSizes, values: NDArray[Any]) -> Floats:
    """NaN where the register has no group: some methods still publish counts there."""
    return np.where(areas.groups > 0, values / areas.groups, np.nan)


def _first(holds: NDArray[np.bool_]) -> Floats:
    return np.argmax(holds, axis=1).astype(np.float64)


def _containing(value: Floats, lower: Floats, upper: Floats) -> Statistic:
    return value, np.minimum(lower, value), np.maximum(upper, value)


def _blanked(statistic: Statistic, empty: NDArray[np.bool_], name: str) -> Statistic:
    if name == "groups":
        return statistic
    value, lower, upper = (np.where(empty, np.nan, part) for part in statistic)
    return value, lower, upper
