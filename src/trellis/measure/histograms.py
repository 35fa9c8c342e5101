"""Measures histograms: true answers of a run of areas, plus noise, written and forgotten.

No more than one row group per thread is ever written out in full; the true histograms stay
sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import LedgerError, StructureError
from trellis.execution.threads import available_workers
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan, PlannedQuery
from trellis.model.queries import Query, parse_query
from trellis.model.sparse_counts import SparseCounts
from trellis.privacy.bits import RandomBits
from trellis.privacy.ledger import Claim
from trellis.storage.histograms import MeasurementWriter, areas_per_group, part_bounds


def measure_histograms(
    folder: Path,
    plan: Plan,
    hierarchy: Hierarchy,
    counts: TrueHistograms,
    claim: Claim,
    bits: RandomBits,
    workers: int | None = None,
) -> None:
    """Write noisy answers to all planned queries into `folder`, a run of areas at a time.

    The claim proves that the ledger was charged for exactly this noise. `bits` is shared by
    threads, as `OsRandom` allows; with another source give one worker.
    """
    if claim.guarantee != plan.privacy:
        raise LedgerError("The ledger was charged for another plan. Start in a new run folder.")
    if counts.leaves.n_cells != plan.schema.n_cells:
        raise StructureError("The counts belong to another schema.")
    levels = dict(zip(hierarchy.level_names, counts.by_level(hierarchy), strict=True))

    def write_part(planned: PlannedQuery, writer: MeasurementWriter, part: int) -> None:
        cells = levels[planned.level]
        first, last = part_bounds(cells.n_areas, writer.query.n_cells)[part]
        with writer.part(part) as file:
            for begin, end in _groups(first, last, writer.query.n_cells):
                file.write(begin, noisy_answer(planned, writer.query, cells, begin, end, bits))

    with ThreadPoolExecutor(workers or available_workers()) as pool:
        futures = []
        for planned in plan.queries:
            writer = MeasurementWriter(folder, plan, hierarchy, planned)
            n_parts = len(part_bounds(hierarchy.size(planned.level), writer.query.n_cells))
            futures += [pool.submit(write_part, planned, writer, part) for part in range(n_parts)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def noisy_answer(
    planned: PlannedQuery,
    query: Query,
    cells: SparseCounts,
    first: int,
    last: int,
    bits: RandomBits,
) -> NDArray[np.int64]:
    """Areas `first : last` x cells of the query."""
    answer = cells.marginal(query.cell_of, query.n_cells, first, last)
    if planned.noise is not None:
        answer += planned.noise.sample(answer.size, bits).reshape(answer.shape)
    return answer


def exact_histogram_answers(
    plan: Plan, hierarchy: Hierarchy, counts: TrueHistograms
) -> list[NDArray[np.int64]]:
    """True answers to all planned queries, in their order: for small worlds and tests."""
    levels = dict(zip(hierarchy.level_names, counts.by_level(hierarchy), strict=True))
    queries = [parse_query(plan.schema, planned.query) for planned in plan.queries]
    return [
        levels[planned.level].marginal(query.cell_of, query.n_cells)
        for planned, query in zip(plan.queries, queries, strict=True)
    ]


def _groups(first: int, last: int, n_cells: int) -> Iterator[tuple[int, int]]:
    step = areas_per_group(n_cells)
    for begin in range(first, last, step):
        yield begin, min(begin + step, last)
