"""`privacy.json`: every number and sentence follows from plan.json. Yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from trellis.verify.documents.differences import differences
from trellis.verify.documents.figures import Figures
from trellis.verify.documents.formats import has_todays_words
from trellis.verify.documents.smaller_changes import smaller_changes
from trellis.verify.documents.statement import attacks, guarantee, restrictions, unprotected
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import highest_cost


def privacy(run: RunFiles) -> Iterator[str]:
    """Every number and sentence of the privacy record follows from the plan."""
    if not has_todays_words(run, "privacy.json"):
        yield from _older(run)
        return
    for place in sorted(differences(run.privacy, _record(run))):
        yield f"privacy.json does not state what follows from plan.json in {place}"


def _record(run: RunFiles) -> dict[str, Any]:
    plan, figures = run.plan, Figures(run)
    return {
        "format": plan["format"],
        **_of_plan(plan),
        "restrictions": restrictions(plan),
        "rho": str(figures.rho),
        "epsilon_pure": None if figures.pure is None else str(figures.pure),
        "epsilon_at_delta": {d: figures.curve.epsilon(float(d)) for d in figures.deltas},
        "unprotected": unprotected(plan),
        "guarantee": guarantee(plan, figures),
        "attacker": attacks(plan, figures),
        "smaller_changes": smaller_changes(run, figures),
    }


def _of_plan(plan: dict[str, Any]) -> dict[str, Any]:
    protection = plan["protection"]
    return {
        "release": plan["release"],
        "dataset": plan["dataset"],
        "unit_of_protection": protection["unit"],
        "neighbours": protection["neighbours"],
        "max_contribution": protection["max_contribution"],
        "protected_within_level": protection["within"],
        "budget": plan["budget"],
        "levels": plan["queries"],
    }


def _older(run: RunFiles) -> Iterator[str]:
    """What a record of an older format must say; its sentences may be others than today's."""
    record = run.privacy
    if run.plan.get("format", 1) == 1:  # whose queries do not say what they cost
        levels = [{k: v for k, v in q.items() if k != "table"} for q in record["levels"]]
        record = {**record, "levels": levels}
    for key, value in _of_plan(run.plan).items():
        if record[key] != value:
            yield f"privacy.json and plan.json differ in {key}"
    cost, kind = highest_cost(run)
    if Fraction(record["rho" if kind == "rho" else "epsilon_pure"]) != cost:
        yield f"privacy.json does not state the cost {kind} = {cost}"
    if run.plan["protection"]["unit"] not in " ".join(record["guarantee"]):
        yield "privacy.json states no guarantee"
    for level in run.plan["unprotected_totals"]:
        if level not in " ".join(record["unprotected"]):
            yield f"privacy.json does not say that totals of {level} are unprotected"
    figures = Figures(run)
    expected = {d: figures.curve.epsilon(float(d)) for d in record["epsilon_at_delta"]}
    if any(differences(record["epsilon_at_delta"], expected)):
        yield "privacy.json does not state the epsilons of its noise"
