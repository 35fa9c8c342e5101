"""Exact rejection for laws too wide for a table of single magnitudes.

Magnitudes are grouped in blocks of `width` = 2^g. A proposal takes a sign, a block b from the table
of one-sided weights exp(-exponent(b width)), and an offset r uniform in the block; its magnitude
m = b width + r is kept with probability exp(-x), where

    x = exponent(m) - exponent(b width) = r (linear + quadratic (2 b width + r)).

Blocks are narrow, so x is below 1/64 and hardly any proposal is lost. A kept m has weight
exp(-exponent(m)) for each sign; zero is kept with a positive sign only, so it counts once.

Whether U < exp(-x), for a 64-bit start of a uniform U, is decided in floating point only where
its error cannot matter (`_MARGIN`); otherwise, and when the block is open, by integers, exactly,
with further words. So the law is exact for every rational parameter. This is the rejection of
Canonne, Kamath and Steinke (arXiv:2004.00010) with a closer proposal: the law itself on a coarser
lattice instead of a discrete Laplace.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from trellis.privacy.bits import RandomBits
from trellis.privacy.table_sampler import OPEN, ThresholdTable, threshold_table
from trellis.privacy.thresholds import Decay, floor_of_exp

CHUNK = 1 << 13
"""Proposals made at a time, of three words each."""

_BLOCKS = 1 << 14
_REJECTED = OPEN + 1

_MARGIN = 2.0**-40
"""More than the error of `_accept`: cut series 2^-45, rounding of U 2^-53, of x and sum 2^-49."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockLaw:
    """A decay, the table of its blocks, and the margin within which floats do not decide."""

    decay: Decay
    width: int
    table: ThresholdTable
    margin: float

    def settle(self, words: NDArray[np.uint64], bits: RandomBits) -> int | None:
        """The integer a proposal's three words lead to, or None when it is rejected."""
        first, second, third = (int(word) for word in words)
        start = self.width * self.table.settle(first, bits)
        magnitude = start + second % self.width
        exponent = self.decay.exponent(magnitude) - self.decay.exponent(start)
        negative = first & 1
        if (negative and not magnitude) or not _is_below_exp(third, exponent, bits):
            return None
        return -magnitude if negative else magnitude


def _is_below_exp(word: int, exponent: Fraction, bits: RandomBits) -> bool:
    """Whether a uniform number that starts with `word` is below exp(-exponent)."""
    u, precision = word, 64
    while u == (floor := floor_of_exp(exponent, precision)):
        u = (u << 64) | int(bits.words(1)[0])
        precision += 64
    return u < floor


def block_width(decay: Decay) -> int:
    """The least power of two for which 2^14 blocks hold all but about 2^-64 of the law."""
    width = 1
    while decay.exponent(_BLOCKS * width) < 45:
        width *= 2
    return width


@lru_cache(maxsize=64)
def block_law(decay: Decay, width: int, bits: int = 63, margin: float = _MARGIN) -> BlockLaw:
    """The decay in blocks of `width`, a power of two."""
    table = threshold_table(decay.at_multiples_of(width), 1, bits)
    return BlockLaw(decay, width, table, margin)


def sample_by_rejection(law: BlockLaw, n: int, bits: RandomBits) -> NDArray[np.int64]:
    """`n` independent draws of the symmetric variable with magnitudes of `law.decay`."""
    samples = np.empty(n, np.int64)
    filled = 0
    while filled < n:
        proposals = min(n - filled + (n - filled) // 64 + 1, CHUNK)
        kept = accepted_proposals(law, proposals, bits)[: n - filled]
        samples[filled : filled + len(kept)] = kept
        filled += len(kept)
    return samples


def accepted_proposals(law: BlockLaw, n: int, bits: RandomBits) -> NDArray[np.int64]:
    """Those of `n` proposals that are kept, in order."""
    words = bits.words(3 * n).reshape(n, 3)
    proposals = np.empty(n, np.int64)
    table, decay = law.table, law.decay
    n_open = _accept(
        words,
        table.thresholds,
        table.guide,
        table.bits,
        table.cell_bits,
        law.width,
        float(decay.linear),
        float(decay.quadratic),
        law.margin,
        proposals,
    )
    if n_open:
        for i in np.flatnonzero(proposals == OPEN):
            settled = law.settle(words[i], bits)
            proposals[i] = _REJECTED if settled is None else settled
    return proposals[proposals != _REJECTED]


@njit(nogil=True, cache=True)
def _accept(words, thresholds, guide, bits, cell_bits, width, linear, quadratic, margin, proposals):
    """Fill `proposals`, marking rejected and open ones; return how many are open."""
    n_open = 0
    for i in range(len(words)):
        u = words[i, 0] >> np.uint64(64 - bits)
        # The search of `table_sampler`, repeated because a cached kernel does not notice changes
        # to functions of other files.
        block = np.int64(guide[u >> np.uint64(cell_bits)])
        while u > thresholds[block]:
            block += 1
        offset = np.int64(words[i, 1] & np.uint64(width - 1))
        magnitude = block * width + offset
        negative = np.int64(words[i, 0] & np.uint64(1))

        x = offset * (linear + quadratic * (magnitude + block * width))
        kept = 1.0
        for n in range(5, 0, -1):
            kept = 1.0 - kept * x / n
        uniform = np.float64(words[i, 2] >> np.uint64(11)) * 2.0**-53

        if u == thresholds[block] or x > 1 / 64 or abs(uniform - kept) <= margin:
            proposals[i] = OPEN
            n_open += 1
        elif uniform > kept or (negative and magnitude == 0):
            proposals[i] = _REJECTED
        else:
            proposals[i] = (magnitude ^ -negative) + negative
    return n_open
