"""What was protected, what it cost, and what was not: `privacy.json`, for people and machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trellis.model.plans.plan import Plan
from trellis.model.plans.smaller_changes import smaller_changes
from trellis.model.plans.statement import (
    attacks_in_words,
    guarantee_in_words,
    stated_delta,
    unprotected_in_words,
)
from trellis.storage.formats import FORMAT
from trellis.storage.plans import query_to_json
from trellis.wording.privacy import DELTAS, MANY_CHARGES


def stated_deltas(plan: Plan) -> tuple[str, ...]:
    return DELTAS if plan.budget.delta is None else (str(float(plan.budget.delta)),)


def privacy_record(plan: Plan) -> dict[str, Any]:
    guarantee = plan.privacy
    pure = guarantee.pure_epsilon
    # Exact curves of smaller changes take a second each where many laws of noise meet.
    delta, many = stated_delta(plan), len(guarantee.charges) > MANY_CHARGES
    at = float(delta)
    return {
        "format": FORMAT,
        "release": plan.release,
        "dataset": plan.dataset,
        "unit_of_protection": plan.protection.unit,
        "neighbours": plan.protection.neighbours,
        "max_contribution": plan.protection.max_contribution,
        "protected_within_level": plan.protection.within,
        "restrictions": list(plan.protection.restrictions),
        "budget": {k: str(v) for k, v in asdict(plan.budget).items() if v is not None},
        "rho": str(guarantee.rho),
        "epsilon_pure": None if pure is None else str(pure),
        "epsilon_at_delta": {d: guarantee.epsilon(float(d)) for d in stated_deltas(plan)},
        "levels": [query_to_json(query) for query in plan.queries],
        "unprotected": unprotected_in_words(plan),
        "guarantee": guarantee_in_words(plan),
        "attacker": attacks_in_words(plan),
        "smaller_changes": [
            {
                "change": change.change,
                "epsilon_at_delta": {delta: change.bound(at) if many else change.epsilon(at)},
                "in_words": change.in_words,
            }
            for change in smaller_changes(plan)
        ],
    }
