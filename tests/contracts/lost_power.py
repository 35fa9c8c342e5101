"""Cuts the power after each step of a release, lets it go on, and says what it saw.

Simulated is a disk that keeps what was written into files, and forgets every change of a folder
(a file made, renamed or removed) after which that folder was not synchronised. POSIX allows this,
and it is what turns an end of a transaction back: SQLite ends one by removing its journal, and a
journal that is there again undoes it.

What is synchronised is observed, not assumed: `os.fsync` is wrapped, and so are the calls by which
SQLite removes files and opens folders to synchronise them (`xSetSystemCall` of its file system).
Not simulated: contents of files that were lost, for which SQLite has tests of its own.

    python lost_power.py WORLD FOLDER STEP,STEP.. [MUTATION]
"""

from __future__ import annotations

import _sqlite3
import ctypes
import json
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from contracts.killed_runs import WORLDS, in_child, release, resume, state, warm_up
from trellis.privacy.ledger import Ledger
from trellis.storage import atomic
from trellis.workflow.confidential import measuring as confidential_half
from trellis.workflow.public.run_folder import RunFolder


class Disk:
    """Which entries of folders below `root` would be there after a loss of power."""

    def __init__(self, root: Path, kept: Path) -> None:
        self.root, self.kept = root, kept
        self.entries: dict[int, dict[str, int]] = {}
        kept.mkdir()
        for place, _, _ in os.walk(root):
            self.synchronised(Path(place))

    def synchronised(self, folder: Path) -> None:
        """What is in the folder now stays in it; files keep their contents through a link."""
        if folder != self.root and self.root not in folder.parents:
            return
        found = {entry.name: entry.inode() for entry in os.scandir(folder)}
        for name, inode in found.items():
            link = self.kept / str(inode)
            if (folder / name).is_file() and not link.exists():
                link.hardlink_to(folder / name)
        self.entries[folder.stat().st_ino] = found

    def after_loss(self, target: Path) -> None:
        """Write what is left into another folder."""
        self._write(self.root.stat().st_ino, target)

    def _write(self, folder: int, target: Path) -> None:
        target.mkdir()
        for name, inode in self.entries.get(folder, {}).items():
            file = self.kept / str(inode)
            if file.exists():
                shutil.copyfile(file, target / name)
            else:
                self._write(inode, target / name)

    def folder(self, inode: int) -> Path | None:
        places = (Path(place) for place, _, _ in os.walk(self.root))
        return next((place for place in places if place.stat().st_ino == inode), None)

    def watch(self) -> None:
        """Notice what this process synchronises from now on."""
        fsync = os.fsync

        def watched(descriptor: int) -> None:
            fsync(descriptor)
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode) and (place := self.folder(status.st_ino)):
                self.synchronised(place)

        os.fsync = watched
        watch_sqlite(self)


# -- SQLite's own calls ----------------------------------------------------------------------------


class FileSystem(ctypes.Structure):
    """The beginning of struct sqlite3_vfs, as far as xSetSystemCall."""


SetSystemCall = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(FileSystem), ctypes.c_char_p, ctypes.c_void_p
)
FileSystem._fields_ = [
    *((name, ctypes.c_int) for name in ("version", "file_size", "longest_path")),
    *((name, ctypes.c_void_p) for name in ("next", "name", "data")),
    *((f"call_{i}", ctypes.c_void_p) for i in range(13)),
    ("set_system_call", SetSystemCall),
]
OpenFolder = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))
KEPT = []


def watch_sqlite(disk: Disk) -> None:
    """SQLite opens a folder for one purpose: to synchronise it."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(FileSystem)
    system = library.sqlite3_vfs_find(None)

    @OpenFolder
    def open_folder(file: bytes, descriptor) -> int:
        folder = Path(os.fsdecode(file)).parent
        disk.synchronised(folder)
        descriptor[0] = os.open(folder, os.O_RDONLY)
        return 0

    KEPT.append(open_folder)  # or it would be collected while SQLite holds it
    call = ctypes.cast(open_folder, ctypes.c_void_p)
    assert system.contents.set_system_call(system, b"openDirectory", call) == 0


# -- trials ----------------------------------------------------------------------------------------

STEPS: dict[str, tuple[object, str]] = {
    "start": (RunFolder, "start"),
    "charge": (Ledger, "charge"),
    "claim": (Ledger, "claim"),
    "draw": (confidential_half, "_write_noisy"),
    "settle": (Ledger, "settle"),
    "publish": (confidential_half, "publish"),
}
"""The power fails when the step has returned."""


def cut_after(step: str, spec: Path, lost: Path) -> int:
    def work() -> None:
        disk = Disk(spec.parent, lost.with_name("kept"))
        owner, name = STEPS[step]
        real: Callable = getattr(owner, name)

        def last(*arguments, **options):
            real(*arguments, **options)
            disk.after_loss(lost)
            os._exit(7)

        setattr(owner, name, last)
        disk.watch()
        release(spec)

    return in_child(work)


def trial(step: str, folder: Path, write: Callable[[Path], Path]) -> dict:
    spec = write(folder / "world")
    ended = cut_after(step, spec, folder / "lost")
    lost = folder / "lost" / "spec.yaml"
    held, seen = state(spec), state(lost)
    resumed = in_child(lambda: resume(lost))
    return {
        "step": step, "ended": ended, "held": held, "seen": seen, "resumed": resumed,
        "then": state(lost),
    }  # fmt: skip


# -- mutations: each breaks one rule on purpose ----------------------------------------------------


def journals_come_back() -> None:
    """The ledger synchronises as it did: FULL, which leaves out the folder."""

    class Weaker(sqlite3.Connection):
        def execute(self, statement, *arguments):
            return super().execute(statement.replace("EXTRA", "FULL"), *arguments)

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **options: connect(*given, factory=Weaker, **options)


def folders_are_not_synchronised() -> None:
    """Files of a run reach the disk, their names do not."""
    sync = atomic.sync
    atomic.sync = lambda path: None if path.is_dir() else sync(path)


MUTATIONS = {f.__name__: f for f in (journals_come_back, folders_are_not_synchronised)}


def main(world: str, folder: Path, steps: list[str], mutation: str | None = None) -> None:
    if mutation:
        MUTATIONS[mutation]()
    if len(steps) > 1:
        warm_up(WORLDS[world](folder / "warm"))
    for step in steps:
        place = folder / step
        place.mkdir()
        print(json.dumps(trial(step, place, WORLDS[world])), flush=True)
        shutil.rmtree(place)


if __name__ == "__main__":
    world, place, steps, *mutation = sys.argv[1:]
    main(world, Path(place), steps.split(","), *mutation)
