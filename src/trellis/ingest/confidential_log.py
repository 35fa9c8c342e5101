"""A log for the owner of the records: which rows are at fault, and why.

It exists only where the owner points it, and never in a run folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
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


def note(lines: Iterable[str]) -> str:
    """Write lines to the log, if there is one; say where, in words that tell nothing confidential.

    Without a log, the lines are not asked for: to find them may take another pass over the records.
    """
    path = _place.get()
    if path is None:
        return "use --confidential-log FILE"
    found = list(lines)  # before the file is opened: to find them may fail
    try:
        with open(path, "a", encoding="utf-8", opener=_for_the_owner) as file:
            file.writelines(line + "\n" for line in found)
    except OSError as error:
        raise InputError(f"{path} could not be written ({error.strerror}).") from None
    return f"see {path}"


def _for_the_owner(path: str, flags: int) -> int:
    file = os.open(path, flags, 0o600)
    os.fchmod(file, 0o600)  # it may have been there before
    return file
