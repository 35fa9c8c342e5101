"""The port to whatever runs tasks, and the one place that says which executor that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.execution.tasks import FamilyTask, Fill
from trellis.execution.threads import Threads

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Calls tasks; results are those of a plain loop, bit for bit."""

    def map_families(
        self, task: FamilyTask[Result], start: NDArray[np.int64], fills: Sequence[Fill] = ()
    ) -> list[Result]:
        """Call the task for runs of families that cover the row pointer `start` once.

        Each call gets the arrays to fill, then the first family of its run and the one after its
        last. Results come in the order of families; of several errors the first is raised.
        """
        ...

    def map_in_order(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        """Results in the order of the items, of which a few are taken ahead.

        However many there are, few are held. The first error is raised in its place.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


_DEFAULT: Executor = Threads()
_executor: ContextVar[Executor] = ContextVar("executor", default=_DEFAULT)


class using:  # noqa: N801  (it reads as a verb, and is faster than a generator: families are many)
    """Within the block, tasks are called by this executor, which is closed at its end."""

    __slots__ = ("_executor", "_token")

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def __enter__(self) -> None:
        self._token = _executor.set(self._executor)

    def __exit__(self, *_: object) -> None:
        _executor.reset(self._token)
        self._executor.close()


def in_threads(workers: int | None) -> AbstractContextManager[None]:
    """Within the block, use this many threads; None leaves the choice as it is."""
    return nullcontext() if workers is None else using(Threads(workers))


def map_families(
    task: FamilyTask[Result], start: NDArray[np.int64], fills: Sequence[Fill] = ()
) -> list[Result]:
    """See `Executor.map_families`."""
    return _executor.get().map_families(task, start, fills)


def map_in_order(task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """See `Executor.map_in_order`."""
    return _executor.get().map_in_order(task, items)


def map_kernel(
    kernel: FamilyTask[Result], start: NDArray[np.int64], *filled: NDArray
) -> list[Result]:
    """A kernel over runs of families, and the arrays that it fills by family or by child."""
    return map_families(kernel, start, [Fill.of(array, start) for array in filled])
