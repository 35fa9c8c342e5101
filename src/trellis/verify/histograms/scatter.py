"""Whether measurements of histograms scatter as much as their noise must. Yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.counts.families import Families
from trellis.verify.counts.scatter import is_wide
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.linear.noisy_answers import Noisy, every_value, noisy_queries


def histogram_scatter(run: RunFiles) -> Iterator[str]:
    """Measurements of areas differ from those of their children by as much noise as was stated."""
    if run.plan["histogram"]["measurements"] != "complete":
        run.notes.append("which measurements there are depends on others: scatter was not compared")
        return
    noise = {(q["level"], q["query"]): q["noise"] for q in run.plan["queries"] if q["noise"]}
    queries = {(q.index, q.name): q for q in noisy_queries(run) if not q.is_exact}
    for (index, name), below in queries.items():
        if (above := queries.get((index - 1, name))) is None:
            continue
        levels = run.levels[index - 1], run.levels[index]
        noises = [noise[level.name, name] for level in levels]
        if not is_wide(*_difference(run, above, below), noises):
            names = " and ".join(level.name for level in levels)
            yield f"measurements {name} of {names} differ by less than their noise must"


def _difference(run: RunFiles, above: Noisy, below: Noisy) -> tuple[np.ndarray, np.ndarray]:
    """Of each area from its children, cell by cell, and the variance of that."""
    family = Families(run.levels[below.index].parent, run.levels[below.index].name)
    gap = every_value(run, above) - family.sum(every_value(run, below))
    children = np.bincount(family.parent)
    return gap.astype(np.float64), above.variance + children * below.variance
