"""Spoilt specs and files: one line and nothing done, or a correct release. Never more."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import yaml

from cli.hostile_cases import STRANGE, paths_in
from cli.test_hostile_input import assert_good_answer, spoilt
from redteam.attack import Attack, Outcome
from redteam.worlds import DRAW

TRIES = 6


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    findings, specs = [], []
    for number in range(TRIES):
        world, place = DRAW[kind](chance), folder / str(number)
        path = world.write(place)
        what = _spoil_spec(path, chance) if chance.random() < 0.6 else _spoil_file(place, chance)
        try:
            assert_good_answer(place, ["run", str(path), "--out", str(place / "run")])
        except Exception as error:
            said = str(error).strip().partition("\n")[0]
            findings.append(f"{what}: {type(error).__name__}: {said}")
            specs.append(path.read_bytes().decode(errors="replace"))
    return Outcome(TRIES, tuple(findings), spec="\n---\n".join(specs))


def _spoil_spec(path: Path, chance: Random) -> str:
    """A strange value, a key that is gone or has another name, or other bytes."""
    text = path.read_text()
    if chance.random() < 0.25:
        path.write_bytes(_edited(text.encode(), chance))
        return "edited bytes of spec.yaml"
    spec = copy.deepcopy(yaml.safe_load(text))
    keys = chance.choice(list(paths_in(spec)))
    holder: Any = spec
    for key in keys[:-1]:
        holder = holder[key]
    name, way = ".".join(keys), chance.random()
    if way < 0.15:
        del holder[keys[-1]]
        what = f"spec.yaml without {name}"
    elif way < 0.3:
        holder[f"{keys[-1]}x"] = holder.pop(keys[-1])
        what = f"spec.yaml with another name for {name}"
    else:
        strange = chance.choice(list(STRANGE))
        holder[keys[-1]] = STRANGE[strange]
        what = f"spec.yaml with {strange!r} for {name}"
    path.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return what


def _spoil_file(folder: Path, chance: Random) -> str:
    path = chance.choice(sorted(folder.glob("*.csv")))
    path.write_bytes(_edited(path.read_bytes(), chance))
    return f"edited bytes of {path.name}"


def _edited(content: bytes, chance: Random) -> bytes:
    edits = [
        (chance.randrange(10_000), chance.randrange(12), chance.randbytes(chance.randrange(8)))
        for _ in range(chance.randint(1, 4))
    ]
    return spoilt(content, edits)


ATTACK = Attack("hostile", "spoilt input: one line, or a correct release", tuple(DRAW), trial)
