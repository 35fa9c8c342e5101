"""Tasks that can travel, and the arrays that they fill.

A task is a frozen dataclass, or a `partial` of a function of a module: parameters and a call, no
closure over anything shared. It must not depend on the thread or process that calls it, nor on what
other calls did, so that any executor, on any machine, gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

FamilyTask = Callable[..., Result]
"""Works on the families `first : last`, its last two arguments; arrays to fill come before them."""


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """An array of which the run `first : last` fills its own part, and reads no other part.

    The part is `pointer[first] : pointer[last]` along `axis`; without a pointer it is
    `first : last`. Threads write into the array itself; other executors bring the parts home.
    """

    array: NDArray[Any]
    pointer: NDArray[np.int64] | None = None
    axis: int = 0

    @classmethod
    def of(cls, array: NDArray[Any], start: NDArray[np.int64]) -> Self:
        """Rows of families if there are as many as families, and else rows of their children."""
        return cls(array, None if array.shape[0] == start.size - 1 else start)

    def part(self, first: int, last: int) -> NDArray[Any]:
        """A view of what a run fills."""
        if self.pointer is not None:
            first, last = int(self.pointer[first]), int(self.pointer[last])
        return self.array[(slice(None),) * self.axis + (slice(first, last),)]
