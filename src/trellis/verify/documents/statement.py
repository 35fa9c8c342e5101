"""The sentences of a guarantee, filled in from plan.json and from figures of our own."""

from __future__ import annotations

import math
from fractions import Fraction
from math import prod
from typing import Any

from trellis.verify.documents.figures import Figures
from trellis.wording import privacy as words

Plan = dict[str, Any]


def restrictions(plan: Plan) -> list[str]:
    """What narrows the changes that are protected."""
    protection = plan["protection"]
    within = protection["within"]
    exact = [] if within is None else [words.WITHIN.format(level=within)]
    return exact + [words.REQUIRED.format(what=what) for what in protection["required"]]


def protected(plan: Plan, *, number_is_known: bool) -> str:
    """Who is protected, against what."""
    unit, most = plan["protection"]["unit"], plan["protection"]["max_contribution"]
    replaced = plan["protection"]["neighbours"] == "replace"
    records = words.ALL_RECORDS if most > 1 else words.ONE_RECORD
    said = words.CONTENT if replaced else words.PRESENCE
    sentences = [said.format(records=records.format(unit=unit, most=most))]
    if replaced and most > 1 and number_is_known:
        sentences.append(words.NUMBER_IS_KNOWN)
    return " ".join(sentences + restrictions(plan))


def unprotected(plan: Plan) -> list[str]:
    """What is public, or published exactly."""
    exact = ", ".join(plan["unprotected_totals"])
    if plan["kind"] == "group_sizes":
        most = prod(len(categories) for categories in plan["schema"].values()) - 1
        return [words.REGISTER.format(levels=exact), words.LARGEST_SIZE.format(most=most)]
    rules = words.PUBLIC_RULES if plan["kind"] == "histograms" else ""
    lists = [words.PUBLIC_LISTS.format(rules=rules)]
    replaced = plan["protection"]["neighbours"] == "replace"
    return [words.EXACT_TOTALS.format(levels=exact), *lists] if exact and replaced else lists


def guarantee(plan: Plan, figures: Figures) -> list[str]:
    """What is protected, how well, what is not, and what must be true for it to hold."""
    known = plan["kind"] != "flows" or bool(plan["unprotected_totals"])
    pure = [] if figures.pure is None else [words.PURE.format(epsilon=figures.pure)]
    approximate = words.APPROXIMATE.format(
        epsilon=figures.epsilon,
        delta=figures.delta,
        how=words.EXACTLY if figures.curve.certified else words.BOUNDED,
        rho=figures.rho,
    )
    in_part = plan.get("histogram", {}).get("measurements") == "used"
    return [
        protected(plan, number_is_known=known),
        *pure,
        approximate,
        *unprotected(plan),
        *([words.MEASURED_IN_PART] if in_part else []),
        f"{_assumption(plan, figures)} {words.SEVERAL}",
    ]


def _assumption(plan: Plan, figures: Figures) -> str:
    protection = plan["protection"]
    just = plan["kind"] == "flows" and plan["unprotected_totals"]
    bound = (words.JUST_AS_MANY if just else words.AT_MOST).format(
        unit=protection["unit"], most=protection["max_contribution"]
    )
    if plan["kind"] == "flows":
        distinct = any(q["query"] == "distinct_pairs" for q in figures.noisy)
        return words.FLOW_LISTS.format(bound=bound, distinct=words.DISTINCT if distinct else "")
    if plan["kind"] == "group_sizes":
        quantity = max(q["max_quantity"] for q in figures.noisy)
        return words.SIZE_LISTS.format(bound=bound, quantity=quantity)
    return words.NOTHING_ELSE.format(bound=bound)


def attacks(plan: Plan, figures: Figures) -> list[str]:
    """The most that an attacker can learn who knows every other record, rounded up."""
    prior, sentences = Fraction(words.PRIOR_PERCENT) / 100, []
    for percent in words.FALSE_ALARMS_PERCENT:
        alarms = Fraction(percent) / 100
        detected = 1 - figures.curve.tradeoff(alarms)
        true_alarm, false_alarm = float(prior) * detected, float((1 - prior) * alarms)
        right = true_alarm / (true_alarm + false_alarm)
        sentences.append(
            words.ATTACK.format(
                false_alarms=float(percent),
                detected=_tenths_up(detected),
                prior=float(words.PRIOR_PERCENT),
                right=_tenths_up(right),
            )
        )
    return sentences + ([words.RESTRICTED] if restrictions(plan) else [])


def _tenths_up(share: float) -> float:
    return min(math.ceil(1000 * share) / 10, 100)
