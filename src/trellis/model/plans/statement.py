"""A plan's guarantee in plain words, assumptions included."""

from __future__ import annotations

from functools import lru_cache

from trellis.model.plans.plan import Plan
from trellis.privacy.attacker import PRIOR, strongest_attacks
from trellis.privacy.guarantee import Guarantee, round_up

USUAL_DELTA = "1e-10"
"""Where the guarantee is stated when the budget names no delta."""

RESTRICTED = (
    "This speaks of two possibilities for one record that both keep what is required of the "
    "records; a possibility that does not keep it is ruled out by the release."
)


def guarantee_in_words(plan: Plan) -> list[str]:
    """What is protected, how well, what is not, and what must be true for it to hold."""
    several = (
        "Several releases of the same records add up; the ledger adds up those that are entered "
        "in it."
    )
    known = unprotected_in_words(plan)
    assumption = f"{_assumption(plan)} {several}"
    left_out = plan.design.about_measurements()
    return [protected_in_words(plan), *_strength(plan), *known, *left_out, assumption]


def protected_in_words(plan: Plan) -> str:
    """Who is protected."""
    return plan.protection.in_words(number_is_known=plan.design.number_is_known(plan))


def _assumption(plan: Plan) -> str:
    protection = plan.protection
    bound = (
        f"This holds if no {protection.unit} has more than {protection.max_contribution} "
        "record(s) in the data"
    )
    return plan.design.assumption(plan, bound)


def attacks_in_words(plan: Plan) -> list[str]:
    """What an attacker can learn who knows every other record."""
    limited = [RESTRICTED] if plan.protection.restrictions else []
    return [*_attacks_in_words(plan.privacy), *limited]


@lru_cache(maxsize=16)  # every document of a release says it, and finding it takes a while
def _attacks_in_words(guarantee: Guarantee) -> tuple[str, ...]:
    return tuple(attack.in_words(PRIOR) for attack in strongest_attacks(guarantee.accountant))


def unprotected_in_words(plan: Plan) -> list[str]:
    return plan.design.unprotected(plan)


def stated_delta(plan: Plan) -> str:
    return USUAL_DELTA if plan.budget.delta is None else str(float(plan.budget.delta))


def _strength(plan: Plan) -> list[str]:
    guarantee, delta = plan.privacy, stated_delta(plan)
    sentences = []
    if (pure := guarantee.pure_epsilon) is not None:
        sentences.append(
            "Whatever is computed from this release, its probability differs between any two such "
            f"data sets by a factor of at most exp({pure}) (pure differential privacy)."
        )
    epsilon = round_up(guarantee.epsilon(float(delta)))
    how = "computed exactly for its noise" if guarantee.accountant.certified else "a safe bound"
    sentences.append(
        f"The release satisfies ({epsilon}, {delta})-differential privacy, {how}, "
        f"and zero-concentrated differential privacy with rho = {guarantee.rho}."
    )
    return sentences
