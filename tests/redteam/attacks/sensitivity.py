"""No neighbour moves the measurements farther than the budget pays for.

Neighbours are drawn as the statement of privacy words them, read by the real ingest and answered by
the real measuring step. The price of the change is compared with the budget of the spec.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

from oracles.accounting import delta as slow_delta
from oracles.accounting import loss_law
from redteam.attack import REFUSED, Attack, Outcome
from redteam.truth import Answers, Moved, farthest, measured, moved, prepared
from redteam.worlds import DRAW
from redteam.worlds.world import RandomWorld, Rows
from trellis.errors import TrellisError
from trellis.privacy.accounting import Composition
from trellis.workflow.preparing.prepared import Prepared

PAIRS = 8
FEW = 8
"""Coordinates that the slow calculator convolves in a moment."""
MISSING = 1e-55
"""What it may leave out."""


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    world = DRAW[kind](chance).complete
    try:
        made = prepared(world.write(folder))
    except TrellisError:
        return REFUSED
    moves, findings = changes(world, made, chance, PAIRS)
    findings += [f"{label} is exact and moves" for move in moves for label in move.exact]
    worst = 0.0
    for move in farthest(moves):
        used, problems = _against_budget(world, move)
        worst = max(worst, used)
        findings += problems
    return Outcome(len(moves), tuple(dict.fromkeys(findings)), worst, world.spec_text)


def changes(
    world: RandomWorld, made: Prepared, chance: Random, number: int
) -> tuple[list[Moved], list[str]]:
    """Of pairs that keep what is required. Of such a pair both are released, or neither."""
    found, problems = [], []
    for left, right in world.pairs(chance, made.plan.protection.within, number):
        if world.broken(left) or world.broken(right):
            continue
        before, after = (answers(world, made, rows) for rows in (left, right))
        if (before is None) != (after is None):
            problems.append("one of two protected neighbours is refused")
        elif before is not None and after is not None:
            found.append(moved(made.plan, before, after))
    return found, problems


def answers(world: RandomWorld, made: Prepared, rows: Rows) -> Answers | None:
    """What is measured; None of records that are refused."""
    try:
        return measured(made, world.table(rows))
    except TrellisError:
        return None


def _against_budget(world: RandomWorld, move: Moved) -> tuple[float, list[str]]:
    """The part of the budget that a change uses, and what is wrong with it."""
    budget = {key: Fraction(value) for key, value in world.privacy["budget"].items()}
    if "delta" in budget:
        return _against_pair(move, budget["epsilon"], budget["delta"])
    kind = "rho" if "rho" in budget else "epsilon"
    cost = move.rho if kind == "rho" else move.epsilon
    assert cost is not None
    says = [f"a neighbour costs {kind} = {cost}, the budget is {budget[kind]}"]
    return float(cost / budget[kind]), says if cost > budget[kind] else []


def _against_pair(move: Moved, epsilon: Fraction, delta: Fraction) -> tuple[float, list[str]]:
    least, most = move.delta(epsilon)
    problems = []
    if least > delta:
        problems.append(f"a neighbour has delta({epsilon}) = {least:.3g}, stated is {delta}")
    if move.parts and sum(part.count for part in move.parts) <= FEW:
        slow = float(slow_delta(loss_law(Composition(move.parts)), float(epsilon)))
        if not least * (1 - 1e-12) - MISSING <= slow <= most * (1 + 1e-12):
            problems.append(f"the accountant gives {least!r} to {most!r}, the slow one {slow!r}")
    return least / float(delta), problems


ATTACK = Attack(
    "sensitivity",
    "neighbours by the real ingest cost no more than the budget",
    tuple(DRAW),
    trial,
    weight=3,
)
