"""Exact inversion of a symmetric integer law through a table of certified thresholds.

A word gives a sign and the leading bits u of a real number U, uniform on [0, 1). The magnitude is
the first k with U < P(M <= k). With t_k = floor(2^bits P(M <= k)),

    u < t_k    proves U < P(M <= k),    since U < (u + 1) / 2^bits,
    u > t_k    proves U > P(M <= k),    since U >= u / 2^bits,

and only u = t_k leaves it open. Then the next word of the stream supplies 64 further bits of U,
which are compared with the thresholds at that precision, and so on; u = 2^bits - 1, the last
threshold, stands for everything beyond the table. So the law is that of exact inversion of a
real uniform number: nothing is rounded or cut off. The sign of a zero has no effect, and zero is
not counted twice because M = 0 carries its weight once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.privacy.bits import RandomBits
from trellis.privacy.thresholds import Decay, cumulative_thresholds

CHUNK = 1 << 15
"""Words drawn at a time: they stay in cache, and memory is bounded by the result."""

OPEN = np.iinfo(np.int64).min
"""What a kernel writes where the words at hand do not decide; no sample is as large."""

_GUIDE_BITS = 14


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdTable:
    """Thresholds of `bits` bits and a guide: where to start the search, by leading bits of u.

    `guide[c]` is the first k whose threshold is not below the least u of cell c.
    """

    decay: Decay
    sides: int
    bits: int
    thresholds: NDArray[np.uint64]
    guide: NDArray[np.int32]

    @property
    def cell_bits(self) -> int:
        """The bits of u that do not take part in choosing a cell of the guide."""
        return self.bits - (len(self.guide).bit_length() - 1)

    def settle(self, word: int, bits: RandomBits) -> int:
        """The magnitude for `word`, with as many further words from `bits` as it takes."""
        precision = self.bits
        u = word >> (64 - precision)
        while True:
            thresholds = cumulative_thresholds(self.decay, self.sides, precision)
            k = bisect_left(thresholds, u)
            if u != thresholds[k]:
                return k
            u = (u << 64) | int(bits.words(1)[0])
            precision += 64


@lru_cache(maxsize=64)
def threshold_table(decay: Decay, sides: int, bits: int = 63) -> ThresholdTable:
    """The table of M = 0, 1, ... with weights 1 and then `sides` exp(-decay.exponent(m))."""
    thresholds = np.array(cumulative_thresholds(decay, sides, bits), np.uint64)
    guide_bits = min(_GUIDE_BITS, bits)
    cells = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(bits - guide_bits)
    guide = np.searchsorted(thresholds, cells).astype(np.int32)
    return ThresholdTable(decay, sides, bits, thresholds, guide)


def sample_by_table(table: ThresholdTable, n: int, bits: RandomBits) -> NDArray[np.int64]:
    """`n` independent draws of the symmetric variable whose magnitude is in `table`."""
    samples = np.empty(n, np.int64)
    for start in range(0, n, CHUNK):
        part = samples[start : start + CHUNK]
        words = bits.words(len(part))
        if _invert(words, table.thresholds, table.guide, table.bits, table.cell_bits, part):
            for i in np.flatnonzero(part == OPEN):
                magnitude = table.settle(int(words[i]), bits)
                part[i] = -magnitude if int(words[i]) & 1 else magnitude
    return samples


@njit(nogil=True, cache=True)
def _invert(words, thresholds, guide, bits, cell_bits, samples):
    """Fill `samples`, marking those left open; return how many are."""
    n_open = 0
    for i in range(len(words)):
        u = words[i] >> np.uint64(64 - bits)
        k = guide[u >> np.uint64(cell_bits)]
        while u > thresholds[k]:
            k += 1
        sign = np.int64(words[i] & np.uint64(1))
        samples[i] = (np.int64(k) ^ -sign) + sign
        if u == thresholds[k]:
            samples[i] = OPEN
            n_open += 1
    return n_open
