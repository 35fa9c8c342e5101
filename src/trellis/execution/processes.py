"""Maps tasks over a pool of processes: the proof that tasks can travel.

Processes are spawned, never forked: this process may have threads, whose locks a fork would copy.
So a script that uses them needs the guard `if __name__ == "__main__"`. What travels is written to
a folder of this user alone, and removed after each map. Noise is not drawn in these processes.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, pairwise
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from pickle import loads
from threading import Thread
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.execution.progress import in_parts
from trellis.execution.shipping import packed, read_value, write_value
from trellis.execution.tasks import FamilyTask, Fill
from trellis.execution.threads import LEAST_RUN, checked_workers, run_cuts

Item = TypeVar("Item")
Result = TypeVar("Result")


class Processes:
    """A pool that is started by its first map and ends with `close`.

    Runs of fewer nodes than `least_run` are not worth sending.
    """

    def __init__(self, workers: int | None = None, least_run: int = LEAST_RUN) -> None:
        self.workers, self._least_run = checked_workers(workers), least_run
        self._pool: ProcessPoolExecutor | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._names = count()

    def map_families(
        self, task: FamilyTask[Result], start: NDArray[np.int64], fills: Sequence[Fill] = ()
    ) -> list[Result]:
        runs = list(pairwise(run_cuts(start, self.workers, self._least_run)))
        if len(runs) <= 1:
            return [task(*(fill.array for fill in fills), *run) for run in in_parts(runs)]
        results = []
        with self._sent((task, tuple(fills))) as place, self._started() as pool:
            futures = [pool.submit(_run_families, place, *run) for run in runs]
            for run, future in in_parts(list(zip(runs, futures, strict=True))):
                result, parts = future.result()
                for fill, part in zip(fills, parts, strict=True):
                    fill.part(*run)[...] = part
                results.append(result)
        return results

    def map_in_order(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        ahead: deque[Future[Result]] = deque()
        with self._sent(task) as place, self._started() as pool:
            for item in items:
                ahead.append(pool.submit(_run_item, place, packed(item)))
                if len(ahead) > self.workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def close(self) -> None:
        """End the processes; what they were doing is lost."""
        pool, self._pool = self._pool, None
        if pool is not None:
            running = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()
            for process in running:
                process.join()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @contextmanager
    def _sent(self, value: object) -> Iterator[Path]:
        """A value in a file, for as long as a map takes."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="trellis-")
        place = Path(self._folder.name) / f"{next(self._names)}.task"
        try:
            write_value(place, value)
            yield place
        finally:
            place.unlink(missing_ok=True)

    @contextmanager
    def _started(self) -> Iterator[ProcessPoolExecutor]:
        """The pool; whatever goes wrong in a map ends it, and the next map starts another."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, get_context("spawn"), _begin)
        try:
            yield self._pool
        except BrokenProcessPool:
            self.close()
            raise TrellisError(
                "A process of the pool ended before its work was done, perhaps for lack of memory. "
                "Use fewer processes, or threads."
            ) from None
        except BaseException:
            self.close()
            raise


# -- in the processes -----------------------------------------------------------------------------


def _begin() -> None:
    """Leave interrupts to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


_read = lru_cache(maxsize=2)(read_value)
"""A file is read for the first run, and kept for others; names of files are not used again."""


def _run_families(place: Path, first: int, last: int) -> tuple[Any, list[NDArray[Any]]]:
    task, fills = _read(place)
    result = task(*(fill.array for fill in fills), first, last)
    return result, [fill.part(first, last) for fill in fills]


def _run_item(place: Path, item: bytes) -> Any:
    return _read(place)(loads(item))  # noqa: S301  (packed by the parent process)
