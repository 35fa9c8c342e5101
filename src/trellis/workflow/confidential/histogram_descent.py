"""Measures histograms from the root down, only the rows that the estimator will read.

A level is measured where the whole counts of the level above leave anyone, and fitted to them; its
counts are kept next to the measurements and decide on the next level. Both are on disk before the
next one begins. The noise of all levels was charged before: `ChargedNoise` proves it. As what is
left out depends on noisy numbers alone, the outcome is that of measuring every row and throwing
away some.

Nothing about the descent is shown or kept before it is complete, so a run that breaks off leaves
only files that are destroyed unread, and may draw again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import Infeasible
from trellis.execution.progress import in_parts, part
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_queries, true_levels
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.rules import enforced_rules
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.atomic import sync_tree
from trellis.storage.histogram_estimates import write_counts
from trellis.storage.histograms import MeasuredHistograms, counts_file


def measure_used_histograms(
    folder: Path,
    plan: Plan,
    hierarchy: Hierarchy,
    counts: TrueHistograms,
    constraints: Constraints | None,
    noise: ChargedNoise,
    tie_seed: int,
    workers: int | None = None,
) -> None:
    """Noisy answers to all planned queries, written level by level."""
    truth = true_levels(plan, hierarchy, counts)
    exact = [query for query in plan.queries if query.noise is None]
    with part(0.0, 0.1):
        measure_queries(folder, plan, hierarchy, truth, exact, noise, workers)
    noisy = MeasuredHistograms(folder, plan, hierarchy, unfinished=True)
    fitted = _fitted_levels(noisy, constraints, tie_seed, workers)
    with part(0.1, 1.0):
        for name in in_parts(hierarchy.level_names, hierarchy.sizes, inner=False):
            here = [query for query in plan.queries if query.level == name and query not in exact]
            measure_queries(folder, plan, hierarchy, truth, here, noise, workers)
            if name != hierarchy.level_names[-1] and (left := next(fitted, None)) is not None:
                write_counts(counts_file(folder, name), left)
            sync_tree(folder)


def _fitted_levels(
    noisy: MeasuredHistograms, constraints: Constraints | None, tie_seed: int, workers: int | None
) -> Iterator[SparseCounts]:
    """Whole counts level by level.

    No family should fail. If one does, to stop there would show something of noise that is then
    drawn again. Without counts above, a level is measured completely, and the public half names
    the family as it does elsewhere.
    """
    from trellis.estimate.histograms.estimators import topdown_levels  # compiles

    histogram = noisy.plan.design_as(HistogramDesign)
    with suppress(Infeasible):
        yield from topdown_levels(
            noisy,
            tie_seed,
            constraints=constraints,
            edit_rules=enforced_rules(noisy.plan.schema, histogram),
            passes=histogram.passes,
            workers=workers,
        )
