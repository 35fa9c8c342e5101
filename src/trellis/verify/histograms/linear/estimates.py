"""Centres and standard errors of histograms against those that the measurements give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.files.histogram_files import centres, marginal, standard_errors, tables
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.facts import HistogramFacts
from trellis.verify.histograms.linear.components import asked, subsets
from trellis.verify.histograms.linear.solving import Component, Linear, Solved, solved_here

TOLERANCE = 1e-6
OLDEST = 3
"""The first format that says all that is needed."""


def histogram_estimates(run: RunFiles) -> Iterator[str]:
    """Estimates and standard errors are those that the measurements give."""
    if not run.has_centres:
        return
    if run.plan.get("format", 1) < OLDEST:
        run.leave_out("estimates and standard errors of this older format were not recomputed")
        return
    found = solved_here(run)
    if isinstance(found, str):
        run.notes.append(f"estimates and standard errors were not recomputed: {found}")
        return
    facts = HistogramFacts(run)
    for level, name, _ in tables(run):
        index = run.levels.index(level)
        if not _has_centres(run, index, name, *found):
            yield f"estimates of {name} on level {level.name} are not those of the measurements"
        if not _has_errors(run, index, name, facts, *found):
            yield f"standard errors of {name} on level {level.name} are not those of the noise"


def _has_centres(
    run: RunFiles, index: int, name: str, linear: Linear, solved: dict[Component, Solved]
) -> bool:
    query, level, kept = asked(run.plan, name), run.levels[index], linear.kept[index]
    published = centres(run, level, marginal(run.plan, name), name)
    empty = np.ones(len(level), dtype=bool)
    empty[kept] = False
    near = TOLERANCE + 1e-9 * np.linalg.norm(published, axis=1).max()
    if np.abs(published[empty]).max(initial=0.0) > near:
        return False
    chosen = list(subsets(linear.sets, query))
    for component, part in linear.components.split(query, published[kept], chosen).items():
        matrix, _ = linear.components.rows(query, component)
        expected = matrix @ solved[component].final[index].value
        if not (np.abs(part - expected).max(initial=0.0) <= near):
            return False
    return True


def _has_errors(
    run: RunFiles,
    index: int,
    name: str,
    facts: HistogramFacts,
    linear: Linear,
    solved: dict[Component, Solved],
) -> bool:
    query, level = marginal(run.plan, name), run.levels[index]
    by_class = np.sqrt(linear.variances(solved, index, asked(run.plan, name)))
    expected = np.zeros((len(level), query.width))
    expected[linear.kept[index]] = by_class[linear.shapes.final[index]]
    least, most = facts.allowed(index, query)
    expected[least == most] = 0.0
    published = standard_errors(run, level, query, name)
    return bool(np.allclose(published, expected, rtol=1e-5, atol=TOLERANCE))
