"""A plan's guarantee in plain words, assumptions included."""

from __future__ import annotations

from functools import lru_cache

from trellis.model.plans.plan import Plan
from trellis.privacy.attacker import PRIOR, strongest_attacks
from trellis.privacy.guarantee import Guarantee, round_up
from trellis.wording import privacy as words


def guarantee_in_words(plan: Plan) -> list[str]:
    """What is protected, how well, what is not, and what must be true for it to hold."""
    known = unprotected_in_words(plan)
    assumption = f"{plan.design.assumption(plan)} {words.SEVERAL}"
    left_out = plan.design.about_measurements()
    return [protected_in_words(plan), *_strength(plan), *known, *left_out, assumption]


def protected_in_words(plan: Plan) -> str:
    """Who is protected."""
    return plan.protection.in_words(number_is_known=plan.design.number_is_known(plan))


def attacks_in_words(plan: Plan) -> list[str]:
    """What an attacker can learn who knows every other record."""
    limited = [words.RESTRICTED] if plan.protection.restrictions else []
    return [*_attacks_in_words(plan.privacy), *limited]


@lru_cache(maxsize=16)  # every document of a release says it, and finding it takes a while
def _attacks_in_words(guarantee: Guarantee) -> tuple[str, ...]:
    return tuple(attack.in_words(PRIOR) for attack in strongest_attacks(guarantee.accountant))


def unprotected_in_words(plan: Plan) -> list[str]:
    return plan.design.unprotected(plan)


def stated_delta(plan: Plan) -> str:
    return words.USUAL_DELTA if plan.budget.delta is None else str(float(plan.budget.delta))


def _strength(plan: Plan) -> list[str]:
    guarantee, delta = plan.privacy, stated_delta(plan)
    sentences = []
    if (pure := guarantee.pure_epsilon) is not None:
        sentences.append(words.PURE.format(epsilon=pure))
    epsilon = round_up(guarantee.epsilon(float(delta)))
    how = words.EXACTLY if guarantee.accountant.certified else words.BOUNDED
    stated = words.APPROXIMATE.format(epsilon=epsilon, delta=delta, how=how, rho=guarantee.rho)
    return [*sentences, stated]
