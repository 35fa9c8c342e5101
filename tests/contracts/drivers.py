"""Starts the programs beside this file that fork and kill, and reads what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import trellis

HERE = Path(__file__).parent


def printed_by(program: str, *arguments: object, prefix: tuple[str, ...] = ()) -> list[Any]:
    """The JSON lines of a program; it runs in a fresh process, without threads."""
    path = os.pathsep.join([str(Path(trellis.__file__).parent.parent), str(HERE.parent)])
    done = subprocess.run(
        [*prefix, sys.executable, HERE / f"{program}.py", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_one_line(words: str) -> None:
    [line] = words.splitlines()
    assert line.startswith("error: ")
    assert len(line) < 600
