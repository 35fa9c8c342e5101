"""The best linear unbiased estimates of histograms, around which intervals lie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.counts.tables import add_up
from trellis.verify.files.histogram_files import centres, marginal, tables
from trellis.verify.files.run_files import RunFiles, ancestors
from trellis.verify.histograms.facts import group_of


def histogram_centres(run: RunFiles) -> Iterator[str]:
    """Estimates that intervals lie around add up over areas and over cells."""
    if run.has_centres:
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
            if not add_up(here, ancestors(run.levels, index[level.name], upper), expected):
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
                group = group_of(query, other)
                if coarse == fine or group is None:
                    continue
                if not add_up(here.T, group, centres(run, level, other, coarse).T):
                    yield f"{fine} of level {level.name} does not add up to {coarse}"
