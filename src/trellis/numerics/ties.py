"""Ties broken at random, but the same way wherever and however often they are broken.

Breaking ties by position would favour the areas that come first. Each node gets instead a
priority, a hash of a published seed and of its index in the whole tree; among equal claims the
least priorities win. Nothing is drawn in sequence, so slices, threads and the order of processing
cannot change the outcome, and the seed never touches the random bits that made the noise.

The hash is SplitMix64, a bijection of 64 bits: two nodes never share a priority.

Reference: Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195.

Trap: Numba's disk cache looks at the file of the compiled function only. After a change here,
delete `__pycache__` or the kernels that call these functions keep the old versions.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

GOLDEN_STEP = 0x9E3779B97F4A7C15
"""Odd, so that multiples of distinct indices are distinct modulo 2^64."""


@njit(nogil=True, cache=True)
def mix(z: np.uint64) -> np.uint64:
    """The output function of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True)
def priority(key: np.uint64, index: int) -> np.uint64:
    """The priority of the node with this index in the whole tree."""
    return mix(key + np.uint64(index) * np.uint64(GOLDEN_STEP))


def tie_key(seed: int) -> np.uint64:
    """The key that a published seed stands for.

    Mixed once, so that neighbouring seeds do not give shifted copies of one sequence.
    """
    return np.uint64(mix(np.uint64((seed + GOLDEN_STEP) % 2**64)))


@njit(nogil=True, cache=True)
def kth_least(values: NDArray[np.uint64], k: int) -> np.uint64:
    """The k-th least of distinct values, k from 1; reorders them (Hoare's selection)."""
    low, high, target = 0, values.size - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return values[target]
