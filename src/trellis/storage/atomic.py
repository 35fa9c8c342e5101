"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EEXIST, ENOTEMPTY
from glob import escape
from pathlib import Path
from stat import S_IMODE
from typing import Any

from trellis.errors import RunFolderError

_PARTIAL = ".partial"


@contextmanager
def new_folder(path: Path, token: str | None = None) -> Iterator[Path]:
    """Fill a folder under a temporary name; `publish` it when the block ends without error."""
    partial = partial_folder(path, token or secrets.token_hex(8))
    try:
        with reporting_os_errors(path):
            make_private(partial)
            yield partial
            publish(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def reporting_os_errors(path: Path) -> Iterator[None]:
    """One line for a full disk, a missing permission, or another process that was faster."""
    try:
        yield
    except OSError as error:
        if error.errno in (ENOTEMPTY, EEXIST):
            raise RunFolderError(
                f"{path} was finished by another process in the meantime. Run the same command "
                "again."
            ) from None
        raise RunFolderError(
            f"{path} could not be written ({error.strerror or type(error).__name__})."
        ) from None


def partial_folder(path: Path, token: str) -> Path:
    return path.with_name(f".{path.name}.{token}{_PARTIAL}")


def make_private(partial: Path) -> None:
    """A folder that its owner alone can read until it is published."""
    partial.mkdir(parents=True, mode=0o700)


def publish(partial: Path, path: Path) -> None:
    """Give a complete folder its name, after everything in it has reached the disk."""
    own = partial.stat().st_mode
    if (usual := own & ~0o777 | 0o777 & ~_umask()) != own:
        partial.chmod(S_IMODE(usual))
    sync_tree(partial)
    partial.rename(path)
    sync(path.parent)


def remove_partials(path: Path) -> None:
    """Destroy, unread, what earlier attempts at this file or folder left behind."""
    for leftover in path.parent.glob(f".{escape(path.name)}.*{_PARTIAL}"):
        try:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        except OSError as error:
            raise RunFolderError(
                f"{leftover}, left by a run that broke off, could not be removed "
                f"({error.strerror}). Remove it, and start again."
            ) from None


def sync_tree(folder: Path) -> None:
    """Flush a folder to disk: everything in it, and its own entry."""
    for place, _, files in os.walk(folder):
        for name in files:
            sync(Path(place, name))
        sync(Path(place))
    sync(folder.parent)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file at once; a private one is readable by its owner alone from the start."""
    partial = partial_folder(path, secrets.token_hex(8))
    try:
        mode = 0o600 if private else 0o666
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except OSError as error:
        raise RunFolderError(f"{path} could not be written ({error.strerror}).") from None
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: Any, *, private: bool = False) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_text(path, text, private=private)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFolderError(f"{path} is missing.") from None
    except (OSError, ValueError, RecursionError):
        raise RunFolderError(f"{path} is damaged: it holds no readable JSON.") from None


def _umask() -> int:
    """The only way to read it is to set it; meanwhile, files are made more private than usual."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def sync(path: Path) -> None:
    """Flush a file to disk, or the entries of a folder, not the contents of its files."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
