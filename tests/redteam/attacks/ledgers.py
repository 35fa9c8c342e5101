"""The ledger never states less than a change costs: charges for persons and for households.

Releases of the records of a tiny society are charged in any order, with declarations that are true
of it. Then one person or one household is added or replaced. What that moves in all tables together
is compared with what `trellis ledger --json` states for that unit, and with the limits it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from command_line import succeed
from redteam.attack import REFUSED, Attack, Outcome
from redteam.worlds.societies import CELLS, HOUSEHOLD, PERSON, Facts, Society, neighbours
from trellis.errors import TrellisError
from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Ledger, Terms
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

CHANGES = 40
DELTA = "1e-6"
KINDS = {"persons": (PERSON,), "units": (PERSON, HOUSEHOLD)}


@dataclass(frozen=True)
class Charged:
    """A charge that the ledger accepted."""

    release: str
    guarantee: Guarantee
    caps: bool

    @property
    def unit(self) -> str:
        return self.guarantee.protection.unit

    @property
    def most(self) -> int | None:
        """Records of a unit that it counts, if it caps them."""
        return self.guarantee.protection.max_contribution if self.caps else None

    def __str__(self) -> str:
        protection = self.guarantee.protection
        return (
            f"{self.release}: {protection.neighbours} of {self.unit}, m = "
            f"{protection.max_contribution}, rho {self.guarantee.rho}, caps {self.caps}"
        )


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    records = {PERSON: chance.randint(1, 3), HOUSEHOLD: chance.randint(1, 2)}
    facts = Facts(records, chance.randint(1, 4), chance.choice((1, 1, 2)))
    ledger = Ledger(folder / "ledger.sqlite")
    charged = _charge(chance, ledger, facts, KINDS[kind])
    if not charged:
        return REFUSED
    said = json.loads(succeed("ledger", "data", "--ledger", ledger.path, "--json"))
    true_facts = replace(facts, records=_declared(charged, facts))
    found = [
        _compare(chance, true_facts, unit, stated, charged)
        for unit, stated in said["units"].items()
    ]
    problems = tuple(dict.fromkeys(what for _, several in found for what in several))
    spec = "\n".join([str(true_facts), *map(str, charged)])
    return Outcome(CHANGES * len(found), problems, max(worst for worst, _ in found), spec)


def _charge(chance: Random, ledger: Ledger, facts: Facts, units: tuple[str, ...]) -> list[Charged]:
    """The ledger may refuse any of them."""
    accepted = []
    for i in range(chance.randint(2, 5)):
        unit = chance.choice(units)
        protection = Protection(
            unit, chance.choice(list(Neighbours)), chance.choice((1, facts.records[unit]))
        )
        noise = DiscreteGaussian(Fraction(chance.randint(1, 12), chance.choice((1, 2))))
        charge = Charged(
            f"release{i}", Guarantee(protection, (Charge("town: total", noise),)),
            chance.random() < 0.25,
        )  # fmt: skip
        limit = Budget(rho=Fraction(chance.randint(1, 40))) if chance.random() < 0.15 else None
        bounds: dict[str, Any] = facts.declared(unit) if chance.random() < 0.75 else {}
        terms = Terms(caps=charge.caps, limit=limit, **bounds)
        try:
            ledger.charge("data", f"run{i}", charge.release, charge.guarantee, terms, "print")
        except TrellisError:
            continue
        accepted.append(charge)
    return accepted


def _declared(charged: list[Charged], facts: Facts) -> dict[str, int]:
    """The most records that anyone has declared; where all releases cap them, there may be more."""
    return {
        unit: max((c.guarantee.protection.max_contribution for c in charged
                   if c.unit == unit and not c.caps), default=most + 1)
        for unit, most in facts.records.items()
    }  # fmt: skip


def _compare(
    chance: Random, facts: Facts, unit: str, stated: dict[str, Any], charged: list[Charged]
) -> tuple[float, list[str]]:
    """The dearest change of one unit against what is stated for it."""
    named = {part["release"] for part in stated["charges"]}
    problems = []
    if not stated["complete"] and stated["limit"] is not None:
        problems.append(f"a limit for a {unit} goes with a sum that leaves something out")
    counted = charged if stated["complete"] else [c for c in charged if c.release in named]
    rho, worst, dearest = Fraction(stated["rho"]), Fraction(0), []
    for _ in range(CHANGES):
        pair = neighbours(chance, facts, unit, replaced=stated["neighbours"] == "replace")
        parts = _moved(*pair, counted) if _is_covered(*pair, counted) else []
        cost = sum((part.rho for part in parts), Fraction(0))
        if cost > worst:
            worst, dearest = cost, parts
    problems += _above(unit, stated, worst, dearest)
    return float(worst / rho) if rho else 0.0, problems


def _is_covered(before: Society, after: Society, counted: list[Charged]) -> bool:
    """A charge for replaced records says nothing about changes in their number."""
    kept = [c for c in counted if c.guarantee.protection.neighbours is Neighbours.REPLACE]
    return all(
        before.table(c.unit, c.most).total() == after.table(c.unit, c.most).total() for c in kept
    )


def _moved(before: Society, after: Society, counted: list[Charged]) -> list[Coordinates]:
    parts = []
    for charge in counted:
        a, b = (side.table(charge.unit, charge.most) for side in (before, after))
        shifts = [abs(a[cell] - b[cell]) for cell in range(CELLS)]
        noise = charge.guarantee.charges[0].mechanism
        parts += [Coordinates(noise, 1, shift) for shift in shifts if shift]
    return parts


def _above(
    unit: str, stated: dict[str, Any], cost: Fraction, parts: list[Coordinates]
) -> Iterator[str]:
    if cost > Fraction(stated["rho"]):
        yield f"a {unit} costs rho = {cost}, the ledger states {stated['rho']}"
    limit = (stated["limit"] or {}).get("rho")
    if limit is not None and cost > Fraction(limit):
        yield f"a {unit} costs rho = {cost}, the limit is {limit}"
    if parts:
        epsilon = stated["epsilon_at_delta"][DELTA]
        least = WorstCase((Composition.of(parts),), True).delta_bounds(epsilon)[0]
        if least > float(DELTA):
            yield f"a {unit} has delta {least:.3g} at the epsilon that is stated for {DELTA}"


ATTACK = Attack("ledger", "the ledger states no less than a unit costs", tuple(KINDS), trial)
