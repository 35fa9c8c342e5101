"""A plan's guarantee in plain words, assumptions included."""

from __future__ import annotations

from functools import lru_cache

from trellis.model.plans.plan import Plan
from trellis.model.plans.size_mechanisms import GROUP_SIZES
from trellis.model.trees.flows import FLOWS
from trellis.privacy.attacker import PRIOR, strongest_attacks
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.group_size_changes import SizeTable
from trellis.privacy.guarantee import Guarantee, round_up
from trellis.privacy.neighbours import Neighbours

USUAL_DELTA = "1e-10"
"""Where the guarantee is stated when the budget names no delta."""

MEASURED_IN_PART = (
    "Numbers that no estimate uses were not measured. Which these are was decided by noisy results "
    "of the levels above alone, so what was published is as private as all numbers together."
)

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
    left_out = [MEASURED_IN_PART] if plan.skips_unused else []
    return [protected_in_words(plan), *_strength(plan), *known, *left_out, assumption]


def protected_in_words(plan: Plan) -> str:
    """Who is protected; with a noisy total of flows, the number of a unit's trips is too."""
    number_is_known = plan.kind != FLOWS or bool(plan.unprotected_totals)
    return plan.protection.in_words(number_is_known=number_is_known)


def _assumption(plan: Plan) -> str:
    protection = plan.protection
    bound = (
        f"This holds if no {protection.unit} has more than {protection.max_contribution} "
        "record(s) in the data"
    )
    if plan.kind == FLOWS:
        return _assumption_of_flows(plan, bound)
    if plan.kind != GROUP_SIZES:
        return f"{bound}."
    quantity = max(q.table.max_quantity for q in plan.queries if isinstance(q.table, SizeTable))
    return (
        f"{bound}, each of which adds at most {quantity} to the size of one group, and if the "
        "register of groups and the largest size were not made from the records."
    )


def _assumption_of_flows(plan: Plan, bound: str) -> str:
    if plan.unprotected_totals:
        bound = bound.replace("more than", "more or fewer than")
    distinct = any(
        isinstance(q.table, FlowTable) and q.table.query is FlowQuery.DISTINCT_PAIRS
        for q in plan.queries
    )
    also = ", no two of them between the same pair of areas," if distinct else ""
    return f"{bound}{also} and if the lists of areas were not made from the records."


def attacks_in_words(plan: Plan) -> list[str]:
    """What an attacker can learn who knows every other record."""
    limited = [RESTRICTED] if plan.protection.restrictions else []
    return [*_attacks_in_words(plan.privacy), *limited]


@lru_cache(maxsize=16)  # every document of a release says it, and finding it takes a while
def _attacks_in_words(guarantee: Guarantee) -> tuple[str, ...]:
    return tuple(attack.in_words(PRIOR) for attack in strongest_attacks(guarantee.accountant))


def unprotected_in_words(plan: Plan) -> list[str]:
    if plan.kind == GROUP_SIZES:
        register = (
            "The register of groups is public and not protected: which groups exist, and in which "
            f"area. Numbers of groups of level(s) {', '.join(plan.unprotected_totals)} are exact."
        )
        most = plan.schema.n_cells - 1
        return [
            register,
            f"The list of areas and the largest size, {most}, are public and not protected.",
        ]
    rules = ", rules and bounds" if plan.histogram is not None else ""
    sentences = [f"The list of areas and categories{rules} is public and not protected."]
    if plan.protection.neighbours is Neighbours.REPLACE and plan.unprotected_totals:
        listed = ", ".join(plan.unprotected_totals)
        exact = f"Totals of level(s) {listed} are published exactly and are not protected."
        return [exact, *sentences]
    return sentences


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
