"""Random bits: an argument of every sampler, and the operating system's own for releases."""

from __future__ import annotations

import os
import threading
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_PIECE = 1 << 15  # words made at a time
_ZEROS = memoryview(bytes(8 * _PIECE))  # encrypted, they are the key stream itself
_BYTES_PER_KEY = 1 << 30


_forks = 0  # between the first process and this one


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def _process() -> tuple[int, int]:
    """Differs between a process and its children.

    A child in another namespace may have its parent's id; one that was forked by other code than
    Python's has the same number of forks.
    """
    return os.getpid(), _forks


class RandomBits(Protocol):
    """A stream of independent, uniform 64-bit words."""

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next `n` words of the stream."""
        ...


class OsRandom:
    """Cryptographic randomness from the operating system; it cannot be seeded or repeated.

    Every thread has its own AES-256-CTR key stream, keyed from `os.urandom`, so threads share an
    instance without a lock. A key is dropped after 2^30 bytes: 2^26 blocks of a permutation differ
    from random ones with advantage below 2^-76, and a counter never comes round. It is dropped
    too in a forked child, which inherits its parent's stream. Copying or pickling would duplicate
    noise, and is refused.
    """

    __slots__ = ("_stream_of_thread",)

    def __init__(self) -> None:
        self._stream_of_thread = threading.local()

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next `n` words of this thread's stream."""
        words = np.empty(n, np.uint64)
        for start in range(0, n, _PIECE):
            piece = words[start : start + _PIECE]
            self._stream(piece.nbytes).fill(piece)
        return words

    def _stream(self, n_bytes: int) -> _KeyStream:
        """A stream of this process and thread with at least `n_bytes` to go."""
        stream: _KeyStream | None = getattr(self._stream_of_thread, "stream", None)
        if stream is None or stream.process != _process() or stream.bytes_left < n_bytes:
            stream = self._stream_of_thread.stream = _KeyStream()
        return stream

    def __reduce__(self) -> NoReturn:
        raise TypeError("OsRandom is neither copied nor pickled; create one where it is needed.")

    def __repr__(self) -> str:
        return "OsRandom()"


class _KeyStream:
    """AES-256-CTR under one fresh key, which only the cipher context knows."""

    __slots__ = ("_encryptor", "bytes_left", "process")

    def __init__(self) -> None:
        self.process = _process()
        self.bytes_left = _BYTES_PER_KEY
        # The key is never used again, so the counter may start at zero.
        self._encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def fill(self, words: NDArray[np.uint64]) -> None:
        self._encryptor.update_into(_ZEROS[: words.nbytes], words.data.cast("B"))
        self.bytes_left -= words.nbytes
