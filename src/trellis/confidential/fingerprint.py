"""A keyed fingerprint of the confidential input.

Without the key, which stays in the ledger, it tells nothing: not even whether a guess at the
records is right, as a plain hash would.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Protocol

_CHUNK = 1 << 22


class ByteSource(Protocol):
    """Anything that can be read as bytes, piece by piece."""

    def read(self, size: int, /) -> bytes: ...


def fingerprint_stream(source: ByteSource, *keys: bytes) -> tuple[str, ...]:
    """BLAKE2b of the bytes under each of the keys, in one reading."""
    digests = [blake2b(key=key, digest_size=32) for key in keys]
    while chunk := source.read(_CHUNK):
        for digest in digests:
            digest.update(chunk)
    return tuple(digest.hexdigest() for digest in digests)


def fingerprint_file(path: Path, *keys: bytes) -> tuple[str, ...]:
    with path.open("rb") as file:
        return fingerprint_stream(file, *keys)
