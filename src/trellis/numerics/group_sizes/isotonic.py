r"""Isotonic regression of rows: the nearest non-decreasing sequence, by pooling violators.

    minimise sum_i (x_i - y_i)^2   over   x_1 <= x_2 <= ... <= x_n.

Neighbouring blocks in the wrong order are replaced by their mean until none are. Bounds
low <= x_i <= high are met by clipping afterwards. Over whole numbers the optimum is the real one
rounded block by block and clipped; a mean of exactly k + 1/2 may go either way, and goes at random.

References: Ayer, Brunk, Ewing, Reid and Silverman, Ann. Math. Stat. 1955 (pooling); Hochbaum and
Queyranne, SIAM J. Discrete Math. 2003 (whole numbers).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints
from trellis.numerics.ties import priority


@njit(nogil=True, cache=True)
def isotonic_rows(values: Floats, out: Floats) -> None:
    """The nearest non-decreasing row to each row of `values`."""
    sums, sizes = np.empty(values.shape[1]), np.empty(values.shape[1])
    for row in range(values.shape[0]):
        isotonic_row(values[row], -np.inf, np.inf, out[row], sums, sizes)


@njit(nogil=True, cache=True)
def isotonic_row(
    values: Floats,
    low: float,
    high: float,
    out: Floats,
    sums: Floats,
    sizes: Floats,
) -> None:
    """Pool violators, then clip to low .. high. `sums` and `sizes` are scratch; `out` may alias.

    Means are compared by cross-multiplying: divisions would take most of the time.
    """
    n_blocks = 0
    for i in range(values.size):
        total, size = values[i], 1.0
        while n_blocks > 0 and sums[n_blocks - 1] * size > total * sizes[n_blocks - 1]:
            n_blocks -= 1
            total += sums[n_blocks]
            size += sizes[n_blocks]
        sums[n_blocks], sizes[n_blocks] = total, size
        n_blocks += 1
    i = 0
    for block in range(n_blocks):
        level = min(max(sums[block] / sizes[block], low), high)
        end = i + int(sizes[block])
        out[i:end] = level
        i = end


@njit(nogil=True, cache=True)
def isotonic_whole_rows(
    values: Ints, high: Ints, key: np.uint64, first_index: int, out: Ints
) -> None:
    """The nearest non-decreasing whole row within 0 .. high to each row, in exact arithmetic.

    `first_index` is the index of the first cell in the whole table, for means of k + 1/2. Blocks of
    equal mean are pooled too, so that they go the same way.
    Range: |values| n^2 < 2^62.
    """
    n = values.shape[1]
    sums, sizes = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(values.shape[0]):
        n_blocks = 0
        for i in range(n):
            total, size = values[row, i], 1
            while n_blocks > 0 and sums[n_blocks - 1] * size >= total * sizes[n_blocks - 1]:
                n_blocks -= 1
                total += sums[n_blocks]
                size += sizes[n_blocks]
            sums[n_blocks], sizes[n_blocks] = total, size
            n_blocks += 1
        i = 0
        for block in range(n_blocks):
            total, size = sums[block], sizes[block]
            level = total // size
            twice_rest = 2 * (total - level * size)
            if twice_rest > size:
                level += 1
            elif twice_rest == size:
                level += np.int64(priority(key, first_index + row * n + i) & np.uint64(1))
            level = min(max(level, 0), high[row])
            for _ in range(size):
                out[row, i] = level
                i += 1
