"""How far published counts are from the true ones. The result tells about the records.

With x the true count, y the published one and [l, u] its interval, over the counts of a level:

    mean absolute error   mean |y - x|            bias        mean (y - x)
    root mean squared     sqrt(mean (y - x)^2)    coverage    share with l <= x <= u

A false positive is a true zero published as more than zero; a false negative the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError

Ends = tuple[NDArray, NDArray]
"""Lower and upper ends of intervals."""

COUNTS, TOTALS = "counts", "totals"
"""What is compared where a level has one table: its counts, and their sums over all cells."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of some counts; `coverage` and `interval_width` are those of the intervals, if any."""

    counts: int
    mean_absolute_error: float
    root_mean_squared_error: float
    bias: float
    largest_error: float
    coverage: float | None
    interval_width: float | None


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Errors of the counts whose true value lies from `least` to `most`."""

    least: int
    most: int
    errors: Errors


@dataclass(frozen=True, slots=True)
class GroupErrors:
    """Errors of some cells of a histogram: those with these categories, by attribute or recode."""

    group: Mapping[str, str]
    true_total: int
    errors: Errors


@dataclass(frozen=True, slots=True)
class LevelErrors:
    """What was compared on a level.

    `what` is `COUNTS`, `TOTALS` or the query of a histogram.
    """

    level: str
    what: str
    areas: int
    errors: Errors
    true_zeros: int
    false_positives: int
    false_negatives: int
    by_size: tuple[SizeClass, ...]
    false_discovery_rate: float | None = None  # of flows: the share of listed pairs without a trip
    by_group: tuple[GroupErrors, ...] = ()  # of histograms


def level_errors(
    level: str,
    what: str,
    truth: NDArray[np.int64],
    published: NDArray,
    ends: Ends | None = None,
) -> LevelErrors:
    """Compare areas x cells with the truth, as a whole and by true size."""
    if truth.shape != published.shape or (ends and any(e.shape != truth.shape for e in ends)):
        raise StructureError("Truth and published counts must have the same shape.")
    is_zero, shown_zero = truth == 0, published < 0.5
    by_size = []
    for least, most in size_classes(int(truth.max(initial=0))):
        inside = (truth >= least) & (truth <= most)
        if inside.any():
            by_size.append(SizeClass(least, most, errors(truth, published, ends, inside)))
    return LevelErrors(
        level,
        what,
        truth.shape[0],
        errors(truth, published, ends, np.ones(truth.shape, dtype=bool)),
        int(is_zero.sum()),
        int((is_zero & ~shown_zero).sum()),
        int((~is_zero & shown_zero).sum()),
        tuple(by_size),
    )


def size_classes(largest: int) -> list[tuple[int, int]]:
    """Zero, 1 to 9, 10 to 99 and so on, up to the largest count."""
    classes, least = [(0, 0)], 1
    while least <= largest:
        classes.append((least, 10 * least - 1))
        least *= 10
    return classes


def errors(
    truth: NDArray[np.int64], published: NDArray, ends: Ends | None, used: NDArray[np.bool_]
) -> Errors:
    """Errors of the counts that are `used`; there must be one. Ends of NaN are not an interval."""
    gap = (published[used] - truth[used]).astype(np.float64)
    coverage = width = None
    if ends is not None:
        given = used & ~np.isnan(ends[0])
        if given.any():
            lower, upper = ends[0][given], ends[1][given]
            coverage = float(((lower <= truth[given]) & (truth[given] <= upper)).mean())
            width = float((upper - lower).mean())
    return Errors(
        gap.size,
        float(np.abs(gap).mean()),
        float(np.sqrt((gap**2).mean())),
        float(gap.mean()),
        float(np.abs(gap).max()),
        coverage,
        width,
    )
