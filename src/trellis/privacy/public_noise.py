"""Noise for public numbers: simulated releases and replicates. It protects nothing.

Nothing is charged for it, so it must never meet a confidential count. It can reach neither a ledger
nor a confidential type, and the code that measures cannot import it: contracts of the import linter
prove both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.bits import OsRandom, RandomBits
from trellis.privacy.mechanisms import Mechanism

Ints = NDArray[np.int64]


class PublicNoise:
    """Draws from the laws of a plan; without bits, from the operating system's."""

    def __init__(self, bits: RandomBits | None = None) -> None:
        self._bits = OsRandom() if bits is None else bits

    def added_to(self, noise: Mechanism | None, answer: Ints) -> Ints:
        """A public answer with noise; without a law, as it is."""
        if noise is None:
            return answer
        return answer + noise.sample(answer.size, self._bits).reshape(answer.shape)
