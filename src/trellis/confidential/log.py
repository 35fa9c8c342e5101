"""A log for the owner of the records: what they did wrong, by rule and number of rows.

It exists only where the owner points it, and never in a run folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from trellis.errors import InputError

_place: ContextVar[Path | None] = ContextVar("confidential_log", default=None)


@contextmanager
def confidential_log(path: str | Path | None) -> Iterator[None]:
    """Within the block, faults of the records are described in this file."""
    token = _place.set(None if path is None else Path(path))
    try:
        yield
    finally:
        _place.reset(token)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def note(text: str) -> str:
    """Write a line to the log; return where it is, in words that tell nothing confidential."""
    path = _place.get()
    if path is None:
        return "give --confidential-log FILE to have it described there"
    try:
        with open(path, "a", encoding="utf-8", opener=_for_the_owner) as file:
            file.write(text + "\n")
    except OSError as error:
        raise InputError(f"{path} could not be written ({error.strerror}).") from None
    return f"{path} says which and how many"
