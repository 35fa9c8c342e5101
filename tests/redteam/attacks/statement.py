"""Statement = truth: what privacy.json of a finished release claims, held against neighbours.

- Every change that it claims to protect, restrictions included, has at the stated delta at most the
  stated epsilon, by the exact accountant on the change itself; smaller changes likewise.
- Records that are refused break something that it says is required of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import trellis as tr
from redteam.attack import REFUSED, Attack, Outcome
from redteam.attacks.sensitivity import answers, changes
from redteam.truth import Moved, farthest, moved, prepared
from redteam.worlds import DRAW
from redteam.worlds.world import RandomWorld, Row
from trellis.errors import TrellisError
from trellis.workflow.preparing.prepared import Prepared

PAIRS = 6
DEAREST = 2
"""Changes that the exact accountant is asked about."""
LOCATION = "location only, within one area of level "
NUMBER = "The number of these records is not protected."


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    world = DRAW[kind](chance)
    spec = tr.load(world.write(folder))
    try:
        release = spec.run(folder / "out")
    except TrellisError:
        return REFUSED
    record = json.loads((release.path / "privacy.json").read_text())
    made = prepared(world.complete.write(folder / "complete"))
    moves, findings = changes(world.complete, made, chance, PAIRS)
    findings += [*_required(world, made, record, chance), *_number(world, record)]
    worst, problems = _against(record["epsilon_at_delta"], moves, "a protected change")
    findings += problems
    tried = len(moves)
    for smaller in record["smaller_changes"]:
        few = list(_smaller(world, made, smaller["change"], chance))
        tried += len(few)
        part, problems = _against(smaller["epsilon_at_delta"], few, smaller["change"])
        worst, findings = max(worst, part), [*findings, *problems]
    return Outcome(tried, tuple(dict.fromkeys(findings)), worst, world.spec_text)


def _against(stated: dict[str, float], moves: list[Moved], what: str) -> tuple[float, list[str]]:
    """The largest part of the stated delta that is used, and what passes it."""
    problems = [f"{what}: {label} is exact and moves" for m in moves for label in m.exact]
    worst = 0.0
    for move in farthest(moves)[:DEAREST]:
        for delta, epsilon in stated.items():
            used = move.delta(epsilon)[0] / float(delta)
            worst = max(worst, used)
            if used > 1:
                problems.append(f"{what}: delta({epsilon:.4f}) is {used:.3g} times the stated one")
    return worst, problems


def _number(world: RandomWorld, record: dict[str, Any]) -> Iterator[str]:
    """The statement says whether the number of a unit's records is protected."""
    several = world.is_replace and world.bound > 1
    if several and (NUMBER in record["guarantee"][0]) != world.number_known:
        yield "the statement is wrong about whether the number of records is protected"


# -- what is required of the records --------------------------------------------------------------


def _required(
    world: RandomWorld, made: Prepared, record: dict[str, Any], chance: Random
) -> Iterator[str]:
    """Records that are refused with certainty must break a stated restriction."""
    for _ in range(PAIRS):
        size = chance.randint(1, world.bound + 1)
        rows = (*world.others, *(world.record(chance) for _ in range(size)))
        for broken in (world.broken(rows), world.broken((*rows, rows[-1]))):
            yield from _unstated(broken, record)
        if world.broken(rows) and answers(world, made, rows) is not None:
            yield "records that break a requirement are released"


def _unstated(broken: frozenset[str], record: dict[str, Any]) -> Iterator[str]:
    said = " ".join(record["restrictions"])
    for what in sorted(broken):
        if f"must keep {what}" not in said:
            yield f"records that do not keep {what} are refused, and no restriction says so"


# -- smaller changes ------------------------------------------------------------------------------


def _smaller(world: RandomWorld, made: Prepared, change: str, chance: Random) -> Iterator[Moved]:
    """Changes of location inside an area, or of one attribute, of all records of a unit."""
    for _ in range(PAIRS // 2):
        before = world.content(chance, world.bound)
        after = tuple(_changed(world, row, change, chance) for row in before)
        if chance.random() < 0.5:  # all of them from one place to one other
            before, after = before[:1] * world.bound, after[:1] * world.bound
        left, right = ((*world.others, *content) for content in (before, after))
        if world.broken(left) or world.broken(right):
            continue
        before_it, after_it = (answers(world, made, rows) for rows in (left, right))
        if before_it is not None and after_it is not None:
            yield moved(made.plan, before_it, after_it)


def _changed(world: RandomWorld, row: Row, change: str, chance: Random) -> Row:
    if change.startswith(LOCATION):
        level = change.removeprefix(LOCATION)
        other = world.record_in(chance, world.area_of(row, level), level)
        return (other[0], *row[1:])
    place, labels = world.attributes[change.removesuffix(" only")]
    return (*row[:place], chance.choice(labels), *row[place + 1 :])


ATTACK = Attack(
    "statement",
    "privacy.json holds for enumerated neighbours, restrictions included",
    tuple(DRAW),
    trial,
    weight=3,
)
