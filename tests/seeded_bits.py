"""Repeatable random bits, for tests only: the package has no way to reach this file."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class SeededBits:
    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return self._generator.random_raw(n)


class ScriptedBits:
    """Exactly these words, in this order; to ask for one too many is an error."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.array([next(self._words) for _ in range(n)], np.uint64)
