"""What a release says about an area, as columns of numbers with their intervals.

Tables of every kind have the same form: rows of areas x cells in the order of the hierarchy, a
column for each attribute of a cell, then count and interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.evaluate.html import LEAST_DECIMALS, decimals_for
from trellis.evaluate.public_run import PublicRun
from trellis.wording.report import ALL_CELLS, MOST_CELLS, STATISTIC_NAMES


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One number for each area of a level; a number that is not known is NaN.

    `exact` marks numbers without noise. An interval of a single number does not make one exact: a
    noisy count of zero often has one.
    """

    name: str
    value: NDArray
    lower: NDArray | None = None
    upper: NDArray | None = None
    exact: NDArray[np.bool_] | None = None

    @property
    def example(self) -> int | None:
        """An area with noise, if possible one whose interval has two ends."""
        if self.lower is None or self.upper is None or self.exact is None:
            return None
        wide, noisy = self.lower < self.upper, ~self.exact & np.isfinite(self.lower)
        found = np.flatnonzero(wide if wide.any() else noisy)
        return int(found[0]) if found.size else None

    def at(self, area: int) -> dict[str, float]:
        """One number with the ends of its interval."""
        assert self.lower is not None
        assert self.upper is not None
        ends = {"count": self.value, "lower": self.lower, "upper": self.upper}
        return {key: float(numbers[area]) for key, numbers in ends.items()}

    @property
    def decimals(self) -> int:
        """Enough to tell the ends of the narrowest interval apart."""
        if self.lower is None or self.upper is None:
            return LEAST_DECIMALS
        width = (self.upper - self.lower).astype(np.float64)
        return decimals_for(float(width[width > 0].min(initial=np.inf)))


def measures(run: PublicRun, level: str) -> list[Measure]:
    """All that is shown about the areas of a level, in the order of the hierarchy.

    Of a histogram that is the smallest table: its others may have thousands of cells for each area.
    """
    found: dict[str, Measure] = {}
    if run.has_statistics:
        found |= {measure.name: measure for measure in statistics(run, level)}
    tables = run.tables(level)
    for table in tables[:1] if run.plan.design.by_query else tables:
        found |= {measure.name: measure for measure in _cells(run, level, table)}
    return list(found.values())


def _cells(run: PublicRun, level: str, name: str) -> Iterator[Measure]:
    """The sum of all cells of a table, and the cells; a single cell is the sum."""
    n_areas = run.plan.areas[run.plan.levels.index(level)]
    n_cells = run.n_rows(name) // n_areas
    table = run.table(name, ["count", "lower", "upper", "std_error"])
    value, lower, upper, std_error = (_numbers(table[c], n_cells) for c in table.column_names)
    exact = std_error == 0
    if n_cells == 1:
        yield Measure("count", value[:, 0], lower[:, 0], upper[:, 0], exact[:, 0])
        return
    if name == run.tables(level)[0]:
        yield Measure(ALL_CELLS, value.sum(axis=1))
    for i, label in enumerate(_labels(run, name, min(n_cells, MOST_CELLS))):
        yield Measure(label, value[:, i], lower[:, i], upper[:, i], exact[:, i])


def _labels(run: PublicRun, name: str, n_cells: int) -> list[str]:
    """What the first cells of a table are called, by its columns of attributes."""
    attributes = [c for c in run.columns(name) if c not in PublicRun.COMMON_COLUMNS]
    rows = run.table(name, attributes).slice(0, n_cells).to_pylist()
    if attributes == ["cell"]:
        return [row["cell"] for row in rows]
    return [", ".join(f"{key} {value}" for key, value in row.items()) for row in rows]


def statistics(run: PublicRun, level: str) -> Iterator[Measure]:
    """What is published about the sizes of groups besides their counts."""
    table = run.table(f"statistics/{level}")
    names = table["statistic"].to_pylist()
    width = names.index(names[0], 1) if names.count(names[0]) > 1 else len(names)
    value, lower, upper = (_numbers(table[name], width) for name in ("value", "lower", "upper"))
    for name, words in STATISTIC_NAMES.items():
        i = names.index(name)
        exact = np.full(len(value), name == "groups")
        yield Measure(words, value[:, i], lower[:, i], upper[:, i], exact)


def _numbers(column: pa.ChunkedArray, width: int) -> NDArray:
    """Areas x numbers; whole numbers stay whole where none is missing."""
    return np.asarray(column.to_numpy()).reshape(-1, width)
