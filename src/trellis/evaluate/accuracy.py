"""How large margins of error are, beside the counts they belong to: from the released tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.evaluate.charts import Axis, Series, line_chart
from trellis.evaluate.public_run import PublicRun

_CLASSES_PER_DECADE = 2
_SMALLEST_CLASS = 5
"""A point in the picture stands for at least so many counts."""


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
        "Margin of error by size of the count",
        Axis("published count", log=True),
        Axis("half the interval, % of the count", log=True),
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
