"""Real processes are killed at random points and go on: one charge, one draw."""

from __future__ import annotations

from pathlib import Path
from random import Random

from contracts import killed_runs
from contracts.drivers import printed_by
from contracts.test_spent_once import faults
from redteam.attack import Attack, Outcome

POINTS = {"before": 2, "during": 5, "after": 2}
ANY = "any"


def trial(kind: str, seed: int, folder: Path, mutation: tuple[str, ...] = ()) -> Outcome:
    """Compiling takes most of the time, so that a trial tries one kind of release, drawn."""
    world = kind if mutation else Random(seed).choice(list(killed_runs.WORLDS))
    trials = printed_by("killed_runs", world, folder, seed, *POINTS.values(), *mutation)
    findings = [
        f"{world}: killed before call {one['call']} ({one['phase']} measuring): not kept: {rule}"
        for one in trials
        for rule in faults(one)
    ]
    return Outcome(len(trials), tuple(findings))


ATTACK = Attack(
    "kills",
    "killed anywhere, a run goes on with one charge and one draw",
    (ANY,),
    trial,
    weight=2,
)
