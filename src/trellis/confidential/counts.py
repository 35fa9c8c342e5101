"""The true counts of the leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError


@dataclass(frozen=True, slots=True, eq=False)
class TrueCounts:
    """Leaves x cells, as tabulated from the records. Its text form shows no number."""

    leaves: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        if self.leaves.dtype != np.int64 or self.leaves.ndim != 2:
            raise StructureError("True counts are whole numbers, leaves x cells.")
        if (self.leaves < 0).any():
            raise StructureError("True counts must not be negative.")
