"""How large margins of error are, compared with their counts: from the released tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.evaluate.charts import Axis, Series, line_chart
from trellis.evaluate.measures import statistics
from trellis.evaluate.public_run import AREAS, PublicRun
from trellis.model.plans.percent import in_percent
from trellis.wording import report as words

_CLASSES_PER_DECADE = 2
_SMALLEST_CLASS = 5
"""A point in the picture stands for at least this many counts."""


@dataclass(frozen=True, slots=True)
class TableErrors:
    """The standard errors of one released table, without counts that are exact; 0 if all are."""

    name: str
    rows: int
    least: float
    median: float
    most: float


def table_errors(run: PublicRun) -> Iterator[TableErrors]:
    """Of every published table of counts: levels, root first, then areas of interest."""
    of_levels = [(name, name) for level in run.plan.levels for name in run.tables(level)]
    of_areas = [
        (words.OF_AREAS.format(area=area.name), f"{AREAS}/{area.name}")
        for area in run.plan.interests
    ]
    for name, file in [*of_levels, *of_areas]:
        errors = run.table(file, ["std_error"])["std_error"]
        if len(errors) > errors.null_count:
            every = errors.drop_null().to_numpy()
            found = every[every > 0] if every.any() else every
            spread = (float(f(found)) for f in (np.min, np.median, np.max))
            yield TableErrors(name, len(errors), *spread)


def statistic_margins(run: PublicRun, level: str) -> Iterator[tuple[str, float]]:
    """Half of the typical interval of every statistic of group sizes that has one."""
    for measure in statistics(run, level):
        if measure.example is not None and measure.lower is not None and measure.upper is not None:
            yield measure.name, float(np.nanmedian(measure.upper - measure.lower)) / 2


def margins_by_size(run: PublicRun) -> str:
    """A line for each level: the margin in percent of the count, by size of the count."""
    lines = []
    for level in run.plan.levels:
        table = run.table(run.tables(level)[0], ["count", "lower", "upper", "std_error"])
        if table["lower"].null_count:
            continue
        count, lower, upper, std_error = (table[name].to_numpy() for name in table.column_names)
        noisy = std_error > 0
        sizes, margins = typical_margins(count[noisy], (upper - lower)[noisy] / 2)
        if len(sizes) > 1:
            lines.append(Series(level, sizes, margins))
    if not lines:
        return ""
    return line_chart(
        words.BY_SIZE,
        Axis(words.BY_SIZE_X.format(unit=run.plan.design.counted_in), log=True),
        Axis(words.BY_SIZE_Y.format(confidence=in_percent(run.plan.confidence)), log=True),
        lines,
    )


def typical_margins(count: NDArray, margin: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Median count and median margin in percent, by size class.

    Zeros, and classes whose typical margin is zero, have no place on logarithmic axes.
    """
    used = count >= 1
    count, margin = count[used].astype(np.float64), margin[used]
    size_class = np.floor(_CLASSES_PER_DECADE * np.log10(count)).astype(np.int64)
    sizes, margins = [], []
    for number in np.unique(size_class):
        inside = size_class == number
        typical = float(np.median(100 * margin[inside] / count[inside]))
        if inside.sum() >= _SMALLEST_CLASS and typical > 0:
            sizes.append(float(np.median(count[inside])))
            margins.append(typical)
    return sizes, margins
