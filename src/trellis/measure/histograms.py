"""Measures histograms: true answers of a run of areas, plus noise, written and forgotten.

No more than one row group per thread is ever written out in full; the true histograms stay
sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import StructureError
from trellis.execution.progress import in_parts
from trellis.execution.threads import available_workers
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.measured_rows import EveryRow
from trellis.model.tables.queries import Query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.histograms import MeasurementWriter, group_bounds


def measure_histograms(
    folder: Path,
    plan: Plan,
    hierarchy: Hierarchy,
    counts: TrueHistograms,
    noise: ChargedNoise,
    workers: int | None = None,
) -> None:
    """Write noisy answers to all planned queries into `folder`, a run of areas at a time."""
    levels = true_levels(plan, hierarchy, counts)
    measure_queries(folder, plan, hierarchy, levels, plan.queries, noise, workers)


def true_levels(plan: Plan, hierarchy: Hierarchy, counts: TrueHistograms) -> list[SparseCounts]:
    """The true histograms by level."""
    if counts.leaves.n_cells != plan.schema.n_cells:
        raise StructureError("The counts belong to another schema.")
    return counts.by_level(hierarchy)


def measure_queries(
    folder: Path,
    plan: Plan,
    hierarchy: Hierarchy,
    levels: Sequence[SparseCounts],
    queries: Sequence[PlannedQuery],
    noise: ChargedNoise,
    workers: int | None = None,
) -> None:
    """Noisy answers to some planned queries: the rows that the plan, and the folder, ask for."""
    with ThreadPoolExecutor(workers or available_workers()) as pool:
        futures = []
        for planned in queries:
            writer = MeasurementWriter(folder, plan, hierarchy, planned)
            cells = levels[hierarchy.index(planned.level)]
            futures += [
                pool.submit(_write_part, writer, part, planned, cells, noise)
                for part in range(len(writer.parts))
            ]
        try:
            for future in in_parts(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _write_part(
    writer: MeasurementWriter, part: int, planned: PlannedQuery, cells: SparseCounts,
    noise: ChargedNoise,
) -> None:  # fmt: skip
    query, rows = writer.query, writer.rows
    with writer.part(part) as file:
        for begin, end in group_bounds(*writer.parts[part], query.n_cells):
            if isinstance(rows, EveryRow):
                first, last = begin // query.n_cells, end // query.n_cells
                file.write(first, noisy_answer(planned, query, cells, first, last, noise))
            else:
                area, cell = rows.located(begin, end)
                values = noisy_rows(planned, query, cells, area, cell, noise)
                file.write_rows(area, cell, values)


def noisy_answer(
    planned: PlannedQuery,
    query: Query,
    cells: SparseCounts,
    first: int,
    last: int,
    noise: ChargedNoise,
) -> NDArray[np.int64]:
    """Areas `first : last` x cells of the query."""
    answer = cells.marginal(query.cell_of, query.n_cells, first, last)
    if planned.noise is not None:
        answer += noise.sample(planned, answer.size).reshape(answer.shape)
    return answer


def noisy_rows(
    planned: PlannedQuery,
    query: Query,
    cells: SparseCounts,
    area: NDArray[np.int64],
    cell: NDArray[np.int64],
    noise: ChargedNoise,
) -> NDArray[np.int64]:
    """Single rows of the query, each an area and a cell."""
    answer = cells.marginal_rows(query.cell_of, query.n_cells, area, cell)
    return answer + noise.sample(planned, answer.size)
