"""Compares tables of counts with the true ones. The result is confidential."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.confidential.metrics import COUNTS, TOTALS, LevelErrors, level_errors
from trellis.model.tables.queries import TOTAL
from trellis.model.trees.areas import OUTSIDE
from trellis.model.trees.codes import Codes
from trellis.storage.measurements import measurement_file
from trellis.storage.parquet import read_table
from trellis.workflow.evaluation.compared_tables import read_published, require_same_totals
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.run_folder import RunFolder


def compare(folder: RunFolder, prepared: Prepared, counts: TrueCounts) -> tuple[LevelErrors, ...]:
    """Levels root first, then categories of areas of interest."""
    plan, tree = prepared.plan, prepared.hierarchy
    _require_same_totals(folder, prepared, counts)
    found = []
    for level, truth in enumerate(tree.sum_up(counts.leaves)):
        shown = ~tree.passes_through[level]
        path = folder.release / f"{plan.levels[level]}.parquet"
        found += _table_errors(path, plan.levels[level], tree.codes(level)[shown], truth[shown])
    for category in prepared.interests.categories:
        inside = category.member != OUTSIDE
        truth = np.zeros((category.size, plan.schema.n_cells), dtype=np.int64)
        np.add.at(truth, category.member[inside], counts.leaves[inside])
        path = folder.release / "areas" / f"{category.name}.parquet"
        found += _table_errors(path, category.name, category.codes, truth)
    return tuple(found)


def _require_same_totals(folder: RunFolder, prepared: Prepared, counts: TrueCounts) -> None:
    plan, totals = prepared.plan, prepared.hierarchy.sum_up(counts.leaves.sum(axis=1))
    for query in plan.queries:
        # On a spine only the root is sure to be an area of the hierarchy.
        comparable = plan.spine is None or query.level == plan.levels[0]
        if query.noise is None and query.query == TOTAL and comparable:
            exact = read_table(measurement_file(folder.measurements, query), ["value"])["value"]
            require_same_totals(exact.to_numpy(), totals[prepared.hierarchy.index(query.level)])


def _table_errors(path: Path, name: str, codes: Codes, truth: NDArray) -> list[LevelErrors]:
    """Errors of a released table whose rows are these areas x cells, and of their totals."""
    n_cells = truth.shape[1]
    count, ends = read_published(path, codes, n_cells)
    found = [level_errors(name, COUNTS, truth, count, ends)]
    if n_cells > 1:
        totals = (numbers.sum(axis=1, keepdims=True) for numbers in (truth, count))
        found.append(level_errors(name, TOTALS, *totals))
    return found
