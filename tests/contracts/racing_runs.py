"""Starts commands in several processes at the same moment and says how each ended.

Run as a program of its own, in a process without threads, so that it can fork: the children have
everything imported and wait for one signal, so that their races are close. Prints a JSON list per
round: the exit code and what was said on standard error.

    python racing_runs.py ROUNDS COMMAND.. -- COMMAND..        {round} is replaced by its number
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from contracts.killed_runs import warm_up
from trellis.cli import main as trellis_command
from worlds import write_world


def start(arguments: list[str], gate: int, words: int) -> int:
    """A child that waits at the gate, and then is the command."""
    if child := os.fork():
        return child
    os.dup2(words, 2)
    os.read(gate, 1)
    sys.argv = ["trellis", "--quiet", *arguments]
    try:
        trellis_command()
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
    except BaseException as error:
        print(f"Traceback: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(99)


def race(commands: list[list[str]]) -> list[tuple[int, str]]:
    gate, lever = os.pipe()
    with ExitStack() as open_files:
        files = [open_files.enter_context(tempfile.TemporaryFile()) for _ in commands]
        children = [
            start(command, gate, file.fileno())
            for command, file in zip(commands, files, strict=True)
        ]
        os.write(lever, b"!" * len(commands))
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        for file in files:
            file.seek(0)
        return list(zip(ends, (file.read().decode() for file in files), strict=True))


def main(rounds: int, words: list[str]) -> None:
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    with tempfile.TemporaryDirectory() as folder:
        warm_up(write_world(Path(folder)))
    for number in range(rounds):
        filled = [[word.replace("{round}", str(number)) for word in c] for c in commands]
        print(json.dumps(race(filled)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
