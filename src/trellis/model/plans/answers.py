"""Answers to planned queries, from tables of counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.queries import TOTAL, parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.privacy.group_size_changes import SizeQuery, SizeTable


def answers(
    plan: Plan, hierarchy: Hierarchy, leaves: NDArray[np.int64], spine: Spine | None = None
) -> list[NDArray[np.int64]]:
    """Answers to the planned queries, in their order: everything that is measured.

    `leaves` are areas x cells of the last level: the truth where a release is measured, public
    counts where one is simulated.
    """
    if leaves.shape != (hierarchy.size(hierarchy.leaf_level), plan.schema.n_cells):
        raise StructureError("The counts belong to another hierarchy or schema.")
    if spine is not None:
        return _answers_on_spine(plan, leaves, spine)
    if plan.spine is not None:
        raise StructureError("The plan measures a spine, but there is none.")
    levels = dict(zip(hierarchy.level_names, hierarchy.sum_up(leaves), strict=True))
    return [_answer(q, levels[q.level]) for q in plan.queries]


def _answers_on_spine(
    plan: Plan, leaves: NDArray[np.int64], spine: Spine
) -> list[NDArray[np.int64]]:
    """The same on a spine, which must be the planned one: only nodes that were priced answer."""
    if plan.spine is None:
        raise StructureError("There is a spine, but the plan does not measure it.")
    plan.spine.require(spine)
    tree = spine.hierarchy
    totals = tree.sum_up(leaves[spine.leaf_order])
    levels = dict(zip(tree.level_names, totals, strict=True))
    found = []
    for q in plan.queries:
        cells = levels[q.level]
        if q.share_class is not None:
            cells = cells[spine.rows(q.level, q.share_class)]
        found.append(_answer(q, cells))
    return found


def _answer(planned: PlannedQuery, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The true answer to a query on a level, from its areas x cells."""
    if planned.query == TOTAL:
        return cells.sum(axis=1, keepdims=True)
    if isinstance(planned.table, SizeTable) and planned.table.query is SizeQuery.CUMULATIVE:
        return np.cumsum(cells, axis=1)[:, :-1]
    return cells


def histogram_answers(
    plan: Plan, hierarchy: Hierarchy, leaves: SparseCounts
) -> list[NDArray[np.int64]]:
    """The same for histograms, written out: for small worlds and simulations."""
    levels = dict(zip(hierarchy.level_names, leaves.by_level(hierarchy), strict=True))
    queries = [parse_query(plan.schema, planned.query) for planned in plan.queries]
    return [
        levels[planned.level].marginal(query.cell_of, query.n_cells)
        for planned, query in zip(plan.queries, queries, strict=True)
    ]
