"""One process at a time in a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trellis.errors import RunFolderError
from trellis.storage.atomic import reporting_os_errors, sync


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other processes from working on `path` until the block ends.

    A file next to it is locked, and removed in the end. The system frees the lock of a process that
    dies, so that a file left over stops no one.
    """
    new_parents = [parent for parent in path.parents if not parent.exists()]
    lock = path.with_name(f".{path.name}.lock")
    with reporting_os_errors(path):
        with suppress(FileExistsError):  # a file in its place is found in the next step
            path.parent.mkdir(parents=True, exist_ok=True)
            for parent in new_parents:
                sync(parent.parent)
        descriptor = _lock(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # before others can have it
        os.close(descriptor)
        for parent in new_parents:  # of a run that did not come about
            with suppress(OSError):
                parent.rmdir()


def _lock(lock: Path, path: Path) -> int:
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(descriptor, lock):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise RunFolderError(
                f"Another process is at work on {path}. When it has ended, run the same command "
                "again, or choose another folder with --out."
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its last holder has removed it meanwhile


def _is_same_file(descriptor: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False
