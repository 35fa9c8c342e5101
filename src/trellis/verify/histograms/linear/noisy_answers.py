"""What was measured of histograms, read as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from trellis.verify.files.histogram_files import marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.plan.price import noise_variance

LEAST_VARIANCE = 1e-9
"""Smaller ones count as this one."""


@dataclass(frozen=True, slots=True)
class Noisy:
    """A planned query: its level, its name and the variance of its noise, 0 if it is exact."""

    index: int
    name: str
    variance: float

    @property
    def is_exact(self) -> bool:
        return self.variance == 0


def noisy_queries(run: RunFiles) -> list[Noisy]:
    index = {level.name: i for i, level in enumerate(run.levels)}
    return [
        Noisy(
            index[q["level"]],
            q["query"],
            0.0 if q["noise"] is None else max(noise_variance(q["noise"]), LEAST_VARIANCE),
        )
        for q in run.plan["queries"]
    ]


def folder_of(run: RunFiles, query: Noisy) -> str:
    name = query.name.replace(" * ", ",") + (",exact" if query.is_exact else "")
    return f"measurements/level={run.levels[query.index].name}/query={name}"


def every_value(run: RunFiles, query: Noisy) -> np.ndarray:
    """All values of a query that was measured completely: nodes x cells."""
    return np.concatenate([block for _, block in blocks(run, query)])


def blocks(run: RunFiles, query: Noisy) -> Iterator[tuple[slice, np.ndarray]]:
    """The same, some areas at a time."""
    width, first = marginal(run.plan, query.name).width, 0
    left = np.zeros(0, dtype=np.int64)
    for values in _pieces(run, query):
        values = np.concatenate([left, values])
        n_areas = values.size // width
        left = values[n_areas * width :]
        if n_areas:
            yield slice(first, first + n_areas), values[: n_areas * width].reshape(-1, width)
            first += n_areas
    if first != len(run.levels[query.index]) or left.size:
        raise Unreadable(f"{folder_of(run, query)} does not have all rows of its level")


def values_in_order(run: RunFiles, query: Noisy) -> np.ndarray:
    """All values that there are, row by row."""
    return np.concatenate([np.zeros(0, np.int64), *_pieces(run, query)])


def _pieces(run: RunFiles, query: Noisy) -> Iterator[np.ndarray]:
    place = folder_of(run, query)
    files = sorted((run.path / place).glob("*.parquet"), key=lambda p: int(p.stem.split("-")[1]))
    for path in files:
        run.require_form(f"{place}/{path.name}")
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                column: Any = file.read_row_group(group, ["value"])["value"]
                yield column.to_numpy()
