"""Whoever changes a finished release is noticed, though all hashes are made good."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

import trellis as tr
from redteam.attack import REFUSED, Attack, Outcome
from redteam.forging import Nothing, forge, make_good, swap_siblings
from redteam.unnoticed import excused
from redteam.worlds import DRAW
from trellis.errors import TrellisError
from trellis.verify import verify_run

FORGERIES = 24
RAGGED = ", where rows are not published"
FOLDER = "folder"
"""In place of a file, where several change together."""


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    world = DRAW[kind](chance)
    try:
        run = tr.load(world.write(folder)).run(folder / "out").path
    except TrellisError:
        return REFUSED
    findings = [f"an honest release: {problem}" for problem in problems(run)]
    make_good(run)
    findings += [f"a copy with the same hashes: {problem}" for problem in problems(run)]
    known, tried = [], 0
    for number in range(FORGERIES):
        copy = shutil.copytree(run, folder / f"forged{number}")
        try:
            file, what = _forge(copy, chance)
        except Nothing:
            continue
        make_good(copy)
        tried += 1
        if not problems(copy):
            if (entry := excused(file, what)) is None:
                findings.append(f"not noticed: {what} in {file}")
            else:
                known.append(entry.why)
        shutil.rmtree(copy)
    return Outcome(tried, tuple(findings), spec=world.spec_text, notes=tuple(known))


def problems(run: Path) -> list[str]:
    try:
        return [p for finding in verify_run(run) for p in finding.problems]
    except TrellisError as error:
        return [str(error)]


def _forge(run: Path, chance: Random) -> tuple[str, str]:
    """Forge one thing; returns the file, and what was done."""
    files = [p for p in sorted(run.rglob("*")) if p.is_file() and p.name != "manifest.json"]
    path = chance.choice(files)
    name = path.relative_to(run).as_posix()
    way = chance.random()
    if way < 0.05:
        path.unlink()
        return name, "file removed"
    if way < 0.10:
        extra = path.with_name(f"extra-{path.name}")
        shutil.copy(path, extra)
        return extra.relative_to(run).as_posix(), "file added"
    if way < 0.15:
        return FOLDER, swap_siblings(run, chance)
    before = path.read_bytes()
    what, content = forge(path, chance)
    if content == before or _same(path, before, content):
        raise Nothing
    path.write_bytes(content)
    return name, f"{what}{RAGGED}" if _has_unpublished_rows(run, path) else what


def _has_unpublished_rows(run: Path, path: Path) -> bool:
    """Estimates of a level where paths end early have rows that no table shows."""
    shown = run / "release" / f"{path.stem.removeprefix('level=')}.parquet"
    if path.parent != run / "estimates" or path.suffix != ".parquet" or not shown.is_file():
        return False
    return pq.read_metadata(path).num_rows > pq.read_metadata(shown).num_rows


def _same(path: Path, before: bytes, after: bytes) -> bool:
    """Written in another way, and the same."""
    return path.suffix == ".json" and json.loads(before) == json.loads(after)


ATTACK = Attack(
    "forgery", "consistent forgeries of finished releases are noticed", tuple(DRAW), trial, 3
)
