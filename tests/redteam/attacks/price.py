"""Price = cost: budget, plan, ledger, statement and verification agree on a finished release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import trellis as tr
from redteam.attack import Attack, Outcome
from redteam.worlds import DRAW
from trellis.errors import TrellisError
from trellis.privacy.guarantee import Guarantee
from trellis.verify import verify_run
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import highest_cost


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    world = DRAW[kind](chance)
    spec = tr.load(world.write(folder))
    try:
        release = spec.run(folder / "out")
    except TrellisError as error:
        return Outcome(1, _unexpected(str(error)), spec=world.spec_text)
    [entry] = tr.Ledger(folder / "ledger.sqlite").entries(spec.dataset)
    record = json.loads((release.path / "privacy.json").read_text())
    budget = {key: Fraction(value) for key, value in world.privacy["budget"].items()}
    findings = [
        *_disagreements(entry.guarantee, record, release.path, budget),
        *(p for f in verify_run(release.path, folder / "ledger.sqlite") for p in f.problems),
    ]
    return Outcome(1, tuple(findings), float(_used(entry.guarantee, budget)), world.spec_text)


def _unexpected(said: str) -> tuple[str, ...]:
    """A drawn spec may be refused; a fault of the program may not."""
    return (said,) if "fault of Trellis" in said else ()


def _used(charged: Guarantee, budget: dict[str, Fraction]) -> Fraction | float:
    if "rho" in budget:
        return charged.rho / budget["rho"]
    if "delta" in budget:
        return charged.accountant.delta(budget["epsilon"]) / float(budget["delta"])
    return (charged.pure_epsilon or Fraction(0)) / budget["epsilon"]


def _disagreements(
    charged: Guarantee, record: dict, run: Path, budget: dict[str, Fraction]
) -> list[str]:
    """What the ledger was charged, against everything else that states a price."""
    planned = tr.Release(run).plan.privacy
    cost, measure = highest_cost(RunFiles(run))
    own = charged.rho if measure == "rho" else charged.pure_epsilon
    facts = {
        "the ledger was charged for another plan": charged == planned,
        f"the ledger has {measure} = {own}, verification {cost}": own == cost,
        "the ledger and privacy.json state another rho": str(charged.rho) == record["rho"],
    }
    if "delta" in budget:
        kept = charged.accountant.delta(budget["epsilon"]) <= budget["delta"]
        facts["the charge does not keep the budget"] = kept
    else:
        [stated] = budget.values()
        facts[f"the ledger was charged {own}, the budget is {stated}"] = own == stated
    return [words for words, holds in facts.items() if not holds]


ATTACK = Attack(
    "price", "ledger = plan = privacy.json = verify = budget", tuple(DRAW), trial, weight=1.5
)
