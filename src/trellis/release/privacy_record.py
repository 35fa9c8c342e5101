"""What was protected, what it cost, and what was not: `privacy.json`, for people and machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trellis.model.plan import Plan
from trellis.privacy.guarantee import round_up
from trellis.privacy.neighbours import Neighbours
from trellis.storage.plans import noise_to_json

DELTAS = ("1e-6", "1e-10", "1e-12")
"""Where the guarantee is stated when the budget names no delta."""


def privacy_record(plan: Plan) -> dict[str, Any]:
    guarantee = plan.privacy
    deltas = DELTAS if plan.budget.delta is None else (str(float(plan.budget.delta)),)
    pure = guarantee.pure_epsilon
    return {
        "release": plan.release,
        "dataset": plan.dataset,
        "unit_of_protection": plan.protection.unit,
        "neighbours": plan.protection.neighbours,
        "max_contribution": plan.protection.max_contribution,
        "protected_within_level": plan.protection.within,
        "budget": {k: str(v) for k, v in asdict(plan.budget).items() if v is not None},
        "rho": str(guarantee.rho),
        "epsilon_pure": None if pure is None else str(pure),
        "epsilon_at_delta": {delta: guarantee.epsilon(float(delta)) for delta in deltas},
        "levels": [
            {
                "level": query.level,
                "query": query.query,
                "share": str(query.share),
                "noise": None if query.noise is None else noise_to_json(query.noise),
            }
            for query in plan.queries
        ],
        "unprotected": _unprotected(plan),
        "guarantee": guarantee_in_words(plan),
    }


def guarantee_in_words(plan: Plan) -> list[str]:
    """The guarantee as sentences, assumptions included."""
    guarantee, pure = plan.privacy, plan.privacy.pure_epsilon
    sentences = [plan.protection.in_words()]
    if pure is not None:
        sentences.append(
            f"Whatever is computed from this release, its probability differs between any two such "
            f"data sets by a factor of at most exp({pure}) (pure differential privacy)."
        )
    else:
        delta = "1e-10" if plan.budget.delta is None else str(float(plan.budget.delta))
        epsilon = guarantee.epsilon(float(delta))
        sentences.append(
            f"The release satisfies zero-concentrated differential privacy with rho = "
            f"{guarantee.rho}, and hence ({round_up(epsilon)}, {delta})-differential privacy."
        )
    sentences += _unprotected(plan)
    sentences.append(
        f"This holds if no {plan.protection.unit} has more than "
        f"{plan.protection.max_contribution} record(s) in the data, and counts all releases of "
        "the same records together only as far as they are in one ledger."
    )
    return sentences


def _unprotected(plan: Plan) -> list[str]:
    """What is published exactly, in sentences."""
    if plan.protection.neighbours is Neighbours.ADD_REMOVE:
        return ["The list of areas and categories is public and not protected."]
    listed = ", ".join(plan.unprotected_totals)
    return [
        f"Totals of level(s) {listed} are published exactly and are not protected.",
        "The list of areas and categories is public and not protected.",
    ]
