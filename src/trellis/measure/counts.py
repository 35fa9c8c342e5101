"""Measures tables of counts: of records by cell, or of groups by size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import LedgerError, StructureError
from trellis.execution.progress import in_parts
from trellis.model.plans.plan import TOTAL, Plan, PlannedQuery
from trellis.model.results.measurements import Measurements
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.privacy.bits import RandomBits
from trellis.privacy.group_size_changes import SizeQuery, SizeTable
from trellis.privacy.ledger import Claim


def measure_counts(
    plan: Plan,
    hierarchy: Hierarchy,
    counts: TrueCounts,
    claim: Claim,
    bits: RandomBits,
    spine: Spine | None = None,
) -> Measurements:
    """Noisy answers to all planned queries.

    The claim proves that the ledger was charged for exactly this noise.
    """
    if claim.guarantee != plan.privacy:
        raise LedgerError("The ledger was charged for another plan. Start in a new run folder.")
    if spine is None:
        exact = exact_answers(plan, hierarchy, counts)
    else:
        exact = answers_on_spine(plan, hierarchy, counts, spine)
    noisy = []
    for query, answer in in_parts(
        zip(plan.queries, exact, strict=True), [answer.size for answer in exact]
    ):
        if query.noise is not None:
            answer = answer + query.noise.sample(answer.size, bits).reshape(answer.shape)
        noisy.append(answer)
    tree = hierarchy if spine is None else spine.hierarchy
    return Measurements(plan, tree, tuple(noisy), spine)


def exact_answers(plan: Plan, hierarchy: Hierarchy, counts: TrueCounts) -> list[NDArray[np.int64]]:
    """True answers to the planned queries, in their order: everything that is measured."""
    if plan.spine is not None:
        raise StructureError("The plan measures a spine, and there is none.")
    if counts.leaves.shape != (hierarchy.size(hierarchy.leaf_level), plan.schema.n_cells):
        raise StructureError("The counts belong to another hierarchy or schema.")
    levels = dict(zip(hierarchy.level_names, hierarchy.sum_up(counts.leaves), strict=True))
    return [_answer(q, levels[q.level]) for q in plan.queries]


def answers_on_spine(
    plan: Plan, hierarchy: Hierarchy, counts: TrueCounts, spine: Spine
) -> list[NDArray[np.int64]]:
    """The same on a spine, which must be the planned one: only nodes that were priced answer."""
    if plan.spine is None:
        raise StructureError("There is a spine, and the plan does not measure it.")
    plan.spine.require(spine)
    if counts.leaves.shape != (hierarchy.size(hierarchy.leaf_level), plan.schema.n_cells):
        raise StructureError("The counts belong to another hierarchy or schema.")
    tree = spine.hierarchy
    totals = tree.sum_up(counts.leaves[spine.leaf_order])
    levels = dict(zip(tree.level_names, totals, strict=True))
    answers = []
    for q in plan.queries:
        cells = levels[q.level]
        if q.share_class is not None:
            cells = cells[spine.rows(q.level, q.share_class)]
        answers.append(_answer(q, cells))
    return answers


def _answer(planned: PlannedQuery, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The true answer to a query on a level, from its areas x cells."""
    if planned.query == TOTAL:
        return cells.sum(axis=1, keepdims=True)
    if isinstance(planned.table, SizeTable) and planned.table.query is SizeQuery.CUMULATIVE:
        return np.cumsum(cells, axis=1)[:, :-1]
    return cells
