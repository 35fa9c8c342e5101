"""What a release says about an area, as columns of numbers with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.evaluate.public_run import PublicRun
from trellis.model.size_mechanisms import GROUP_SIZES

MOST_CELLS = 60
"""So many cells are shown area by area; the others are in the tables."""

_STATISTICS = {
    "mean_size": "mean size",
    "median": "median size",
    "share_of_size_1": "share of groups of size 1",
    "gini": "Gini coefficient of sizes",
    "groups": "number of groups (exact)",
}


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One number for each area of a level; a number that is not known is NaN."""

    name: str
    value: NDArray
    lower: NDArray | None = None
    upper: NDArray | None = None


def measures(run: PublicRun, level: str) -> list[Measure]:
    """All that is shown about the areas of a level, in the order of the hierarchy."""
    found = list(_cells(run, level))
    if run.plan.kind == GROUP_SIZES:
        return [*_statistics(run, level), *found]
    return found


def _cells(run: PublicRun, level: str) -> Iterator[Measure]:
    """The sum of all cells, and the cells; a single cell is the sum."""
    table = run.table(level, ["count", "lower", "upper"])
    n_cells = run.plan.schema.n_cells
    value, lower, upper = (_numbers(table[name], n_cells) for name in table.column_names)
    if n_cells == 1:
        yield Measure("count", value[:, 0], lower[:, 0], upper[:, 0])
        return
    yield Measure("all cells together", value.sum(axis=1))
    for i, cell in zip(range(MOST_CELLS), run.plan.schema.cells(), strict=False):
        yield Measure(_label(run, cell), value[:, i], lower[:, i], upper[:, i])


def _label(run: PublicRun, cell: tuple[str, ...]) -> str:
    names = run.plan.schema.names
    if names == ("cell",):
        return cell[0]
    return ", ".join(f"{name} {value}" for name, value in zip(names, cell, strict=True))


def _statistics(run: PublicRun, level: str) -> Iterator[Measure]:
    table = run.table(f"statistics/{level}")
    names = table["statistic"].to_pylist()
    width = names.index(names[0], 1) if names.count(names[0]) > 1 else len(names)
    value, lower, upper = (_numbers(table[name], width) for name in ("value", "lower", "upper"))
    for name, words in _STATISTICS.items():
        i = names.index(name)
        yield Measure(words, value[:, i], lower[:, i], upper[:, i])


def _numbers(column: pa.ChunkedArray, width: int) -> NDArray:
    """Areas x numbers; whole numbers stay whole where none is missing."""
    return np.asarray(column.to_numpy()).reshape(-1, width)
