"""Runs releases on disks that are too small, gives them room, and says how both attempts ended.

Run as a program of its own, in a process without threads, so that it can fork. A small disk is a
file system in memory of that many bytes (`disk`, in a name space of its own: start this program
with `unshare --user --map-root-user --mount`), or a limit on the size of a file (`file`).

    python short_of_room.py FOLDER disk|file BYTES..
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from contracts.killed_runs import in_child, state, warm_up
from contracts.racing_runs import race
from trellis.verify import verify_run
from worlds import write_world

ROOM = 50_000_000


def mount(folder: Path, size: int, *options: str) -> None:
    option = ",".join(["size=" + str(size), *options])
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "none", folder], check=True)


def limit_files(size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size if size < ROOM else hard, hard))


def trial(folder: Path, kind: str, size: int) -> dict:
    folder.mkdir()
    if kind == "disk":
        mount(folder, ROOM)
    spec = write_world(folder)
    command = ["run", str(spec), "--out", str(folder / "out")]
    used = sum(8192 for _ in folder.iterdir())  # a page for each file, and one for its name
    narrow = mount if kind == "disk" else lambda _, bytes_, *__: limit_files(bytes_)
    narrow(folder, used + size if kind == "disk" else size, "remount")
    [(code, words)] = race([command])
    narrow(folder, ROOM, "remount")
    seen = state(spec)
    [(resumed, then_words)] = race([command])
    verified = in_child(lambda: assert_sound(folder / "out"))
    return {
        "size": size, "code": code, "words": words, "seen": seen, "resumed": resumed,
        "then_words": then_words, "verified": verified, "then": state(spec),
    }  # fmt: skip


def assert_sound(run: Path) -> None:
    assert all(finding.holds for finding in verify_run(run))


def main(folder: Path, kind: str, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as warm:
        warm_up(write_world(Path(warm)))
    for size in sizes:
        print(json.dumps(trial(folder / f"{kind}-{size}", kind, size)), flush=True)


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main(Path(sys.argv[1]), sys.argv[2], [int(size) for size in sys.argv[3:]])
