"""Names for the arrays that signatures speak of; the kernels are compiled for these types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Counts, positions and pointers."""

ShortInts = NDArray[np.int32]
"""Numbers of which there are as many as leaves, kept small."""

Floats = NDArray[np.float64]

Marks = NDArray[np.bool_]
