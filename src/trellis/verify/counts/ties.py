"""Who wins a tie: the least of the hashes of a published seed and the index of a number.

The hash is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
"""

from __future__ import annotations

import numpy as np

_STEP = 0x9E3779B97F4A7C15
_WORD = 1 << 64


def ranks(seed: int, index: np.ndarray) -> np.ndarray:
    """Of numbers with these indices; the least wins."""
    key = _mixed(np.array([(seed + _STEP) % _WORD], dtype=np.uint64))
    return _mixed(key + index.astype(np.uint64) * np.uint64(_STEP))


def _mixed(word: np.ndarray) -> np.ndarray:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
