"""Map compiled functions that release the GIL over runs of families, in threads.

Numba's own threading layers abort or deadlock under concurrent calls and after a fork, so kernels
are serial and this module hands each thread a slice.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.execution.progress import in_parts, pieces_here
from trellis.execution.tasks import FamilyTask, Fill

Item = TypeVar("Item")
Result = TypeVar("Result")

LEAST_RUN = 1 << 15
"""Nodes that take about as long as handing them to a thread."""

RUNS_PER_WORKER = 4
"""More than one, so that a worker that meets easy families takes on more."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Maps in threads of this process, by default one for each processor; one means a loop."""

    workers: int | None = None

    def map_families(
        self, task: FamilyTask[Result], start: NDArray[np.int64], fills: Sequence[Fill] = ()
    ) -> list[Result]:
        return map_families(partial(task, *(fill.array for fill in fills)), start, self.workers)

    def map_in_order(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        return map_in_order(task, items, self.workers)

    def close(self) -> None:
        """Threads end with each map."""


def available_workers() -> int:
    """Processors that this process may use, which in a container are not all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_families(
    work: Callable[[int, int], Result], start: NDArray[np.int64], workers: int | None = None
) -> list[Result]:
    """Call `work(first, last)` for runs of families that cover the row pointer `start` once.

    Results come back in the order of the families, and the first error is raised again here.
    If `work` treats each family by itself, any number of workers gives the same answer.
    """
    workers = checked_workers(workers)
    runs = list(pairwise(run_cuts(start, workers)))
    work = pieces_here(work)
    if workers == 1 or len(runs) <= 1:
        return [work(first, last) for first, last in in_parts(runs)]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, first, last) for first, last in runs]
        try:
            return [future.result() for future in in_parts(futures)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def checked_workers(workers: int | None) -> int:
    if workers is None:
        return available_workers()
    if workers < 1:
        raise StructureError(f"{workers} workers cannot do anything. Give at least one.")
    return workers


def run_cuts(start: NDArray[np.int64], workers: int, least_run: int = LEAST_RUN) -> list[int]:
    """Where runs of about equal work begin, and the end of the last."""
    work_before = start + np.arange(start.size)  # families without children take time too
    nodes = int(work_before[-1])
    n_runs = max(1, min(workers * RUNS_PER_WORKER, nodes // least_run))
    inner = np.searchsorted(work_before, nodes * np.arange(1, n_runs) // n_runs)
    return np.unique([0, *inner, start.size - 1]).tolist()


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Results of `work` in the order of the items, made in threads a few items ahead.

    However many items there are, only that few results are held; the first error is raised again
    here.
    """
    workers = checked_workers(workers)
    if workers == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[Result]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(work, item))
                if len(ahead) > workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
