"""Whole cumulative counts of the leaves, whose rounding errors do not pile up in larger areas.

Leaves are visited in the order of the tree. Each is given its real-valued row plus what the leaves
before it were rounded down by (minus what they were rounded up by); the sum is made monotone,
clipped to 0 .. G and rounded, and the new error goes on to the next leaf. Areas are runs of
leaves: the error of an area is that handed over at its end less that at its beginning.

The rows are monotone and whole by construction; parents are sums of leaves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints
from trellis.numerics.group_sizes.isotonic import isotonic_row


@njit(nogil=True, cache=True)
def diffuse_errors(leaves: Floats, groups: Ints, out: Ints) -> None:
    """Round the rows of `leaves`, cumulative counts of areas with these `groups`, into `out`."""
    n_sizes = leaves.shape[1]
    sums, sizes = np.empty(n_sizes), np.empty(n_sizes)
    target, level, carried = np.empty(n_sizes), np.empty(n_sizes), np.zeros(n_sizes)
    for leaf in range(leaves.shape[0]):
        for s in range(n_sizes):
            target[s] = leaves[leaf, s] + carried[s]
        isotonic_row(target, 0.0, float(groups[leaf]), level, sums, sizes)
        for s in range(n_sizes):
            out[leaf, s] = np.int64(np.floor(level[s] + 0.5))
            carried[s] = target[s] - out[leaf, s]
