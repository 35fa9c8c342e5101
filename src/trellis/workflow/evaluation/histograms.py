"""Compares the tables of a release of histograms with the true ones. The result is confidential."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.histograms import TrueHistograms
from trellis.confidential.metrics import Ends, GroupErrors, LevelErrors, errors, level_errors
from trellis.errors import RunFolderError
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.release.tables.histograms import table_name
from trellis.storage.histograms import load_measurement
from trellis.workflow.evaluation.compared_tables import read_published, require_same_totals
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.run_folder import RunFolder

SMALL_QUERY = 64
"""Cells up to which a query has the errors of each cell; beyond, of each category."""


def compare(
    folder: RunFolder, prepared: Prepared, counts: TrueHistograms
) -> tuple[LevelErrors, ...]:
    """Errors of every published table, root first."""
    plan, tree = prepared.plan, prepared.hierarchy
    if not plan.design_as(HistogramDesign).tables:
        raise RunFolderError("This release publishes no table: there is nothing to compare.")
    levels = dict(zip(tree.level_names, counts.by_level(tree), strict=True))
    _require_exact_totals(folder, prepared, levels)
    found = []
    for level, name in plan.design_as(HistogramDesign).tables:
        query, index = parse_query(plan.schema, name), tree.index(level)
        shown = ~tree.passes_through[index]
        truth = levels[level].marginal(query.cell_of, query.n_cells)[shown]
        path = folder.release / level / f"{table_name(name)}.parquet"
        published, ends = read_published(path, tree.codes(index)[shown], query.n_cells)
        whole = level_errors(level, name, truth, published, ends)
        found.append(replace(whole, by_group=group_errors(query, truth, published, ends)))
    return tuple(found)


def group_errors(
    query: Query, truth: NDArray[np.int64], published: NDArray, ends: Ends | None
) -> tuple[GroupErrors, ...]:
    """Errors of each cell of a small query, of each category that a larger one keeps."""
    found = []
    for group, cells in _groups(query):
        used = np.zeros(truth.shape, dtype=bool)
        used[:, cells] = True
        total = int(truth[:, cells].sum())
        found.append(GroupErrors(group, total, errors(truth, published, ends, used)))
    return tuple(found)


def _groups(query: Query) -> Iterator[tuple[Mapping[str, str], NDArray[np.int64]]]:
    """Categories by factor, and the cells that have them; nothing for a total."""
    shape = [len(factor.labels) for factor in query.factors]
    if not shape:
        return
    position = np.unravel_index(np.arange(query.n_cells), shape)
    if query.n_cells <= SMALL_QUERY:
        for cell in range(query.n_cells):
            at = zip(query.factors, position, strict=True)
            yield {f.name: f.labels[p[cell]] for f, p in at}, np.array([cell])
        return
    for factor, place in zip(query.factors, position, strict=True):
        for i, label in enumerate(factor.labels):
            yield {factor.name: label}, np.flatnonzero(place == i)


def _require_exact_totals(
    folder: RunFolder, prepared: Prepared, levels: Mapping[str, SparseCounts]
) -> None:
    total = np.zeros(prepared.plan.schema.n_cells, dtype=np.int32)
    for query in prepared.plan.queries:
        if query.noise is None:
            exact = load_measurement(folder.measurements, query)["value"].to_numpy()
            require_same_totals(exact, levels[query.level].marginal(total, 1)[:, 0])
