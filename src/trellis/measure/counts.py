"""Measures tables of counts: of records by cell, or of groups by size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import LedgerError, StructureError
from trellis.model.hierarchy import Hierarchy
from trellis.model.measurements import Measurements
from trellis.model.plan import TOTAL, Plan
from trellis.privacy.bits import RandomBits
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.ledger import Claim


def measure_counts(
    plan: Plan, hierarchy: Hierarchy, counts: TrueCounts, claim: Claim, bits: RandomBits
) -> Measurements:
    """Noisy answers to all planned queries.

    The claim proves that the ledger was charged for exactly this noise.
    """
    if claim.guarantee != plan.privacy:
        raise LedgerError("The ledger was charged for another plan. Start in a new run folder.")
    exact = exact_answers(plan, hierarchy, counts)
    noisy = []
    for query, answer in zip(plan.queries, exact, strict=True):
        if query.noise is not None:
            answer = answer + query.noise.sample(answer.size, bits).reshape(answer.shape)
        noisy.append(answer)
    return Measurements(plan, hierarchy, tuple(noisy))


def exact_answers(plan: Plan, hierarchy: Hierarchy, counts: TrueCounts) -> list[NDArray[np.int64]]:
    """True answers to the planned queries, in their order: everything that is measured."""
    if counts.leaves.shape != (hierarchy.size(hierarchy.leaf_level), plan.schema.n_cells):
        raise StructureError("The counts belong to another hierarchy or schema.")
    levels = dict(zip(hierarchy.level_names, hierarchy.sum_up(counts.leaves), strict=True))
    return [_answer(q.query, levels[q.level]) for q in plan.queries]


def _answer(query: str, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The true answer to a query on a level, from its areas x cells."""
    if query == TOTAL:
        return cells.sum(axis=1, keepdims=True)
    if query == SizeQuery.CUMULATIVE:
        return np.cumsum(cells, axis=1)[:, :-1]
    return cells
