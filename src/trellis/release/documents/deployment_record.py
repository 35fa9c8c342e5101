"""The privacy record in the field names of the OpenDP deployments registry: `deployment.yaml`.

The names are those of the registry's schema of July 2026, which allows no others. What a program
cannot know, such as who publishes and what for, is marked, and the file's head names it: a curator
fills it in before handing the record to the registry.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from trellis.model.plans.percent import in_percent
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import guarantee_in_words, stated_delta, unprotected_in_words
from trellis.privacy.guarantee import round_up
from trellis.wording import deployment as words
from trellis.wording.deployment import TO_FILL_IN


def deployment_record(plan: Plan, date: str, version: str) -> dict[str, Any]:
    """The record as nested fields; `date` is YYYY-MM-DD."""
    return {
        "url_slug": re.sub(r"[\W_]+", "-", plan.release.lower()).strip("-"),
        "status": words.STATUS,
        "tier": words.TIER,
        "deployment": {
            "basic": _basic(plan, date),
            "dp_variant": _variant(plan),
            "privacy_loss": _privacy_loss(plan),
            "deployment_model": dict(words.MODEL),
            "accounting": {
                "post_processing": _post_processing(plan),
                "composition": _composition(plan),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": TO_FILL_IN,
                "mechanisms": _mechanisms(plan, version),
                "justification": TO_FILL_IN,
            },
            "administrative": {"registry_authors": [TO_FILL_IN], "sources": TO_FILL_IN},
        },
    }


def deployment_yaml(plan: Plan, date: str, version: str) -> str:
    record = deployment_record(plan, date, version)
    head = words.HEAD.format(open_fields=", ".join(open_fields(record)))
    return head + yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=100)


def open_fields(record: dict[str, Any], place: str = "") -> list[str]:
    """The fields that are to be filled in, as dotted names."""
    found = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += open_fields(value, f"{place}{name}.")
        elif value in (TO_FILL_IN, [TO_FILL_IN]):
            found.append(place + name)
    return found


def _basic(plan: Plan, date: str) -> dict[str, Any]:
    pairs = zip(plan.levels, plan.areas, strict=True)
    described = words.DESCRIPTION.format(
        what=plan.design.described,
        levels=", ".join(words.LEVEL.format(level=name, areas=n) for name, n in pairs),
        cells=plan.schema.n_cells,
        margins=_margins(plan),
    )
    return {
        "name": plan.release,
        "data_curators": [TO_FILL_IN],
        "description": described,
        "intended_use": TO_FILL_IN,
        "data_product_type": words.PRODUCT_TYPE,
        "data_product_region": TO_FILL_IN,
        "publication_date": date,
    }


def _margins(plan: Plan) -> str:
    if not plan.method.has_variances:
        return ""
    return words.MARGINS.format(confidence=in_percent(plan.confidence))


def _variant(plan: Plan) -> dict[str, Any]:
    protection = plan.protection
    domain = words.DOMAIN.format(unit=protection.unit, most=protection.max_contribution)
    return {
        "variant_name": words.CONCENTRATED if plan.privacy.pure_epsilon is None else words.PURE,
        "data_domain": " ".join([domain, *protection.restrictions]),
        "unprotected_quantities": " ".join(unprotected_in_words(plan)),
    }


def _privacy_loss(plan: Plan) -> dict[str, Any]:
    guarantee, delta = plan.privacy, stated_delta(plan)
    pure, epsilon = guarantee.pure_epsilon, guarantee.epsilon(float(delta))
    parameters: dict[str, Any] = {"rho": float(guarantee.rho)} if pure is None else {}
    parameters |= (
        {"epsilon": float(round_up(epsilon)), "delta": float(delta)}
        if pure is None
        else {"epsilon": float(pure)}
    )
    return {
        "privacy_unit": plan.protection.unit,
        "privacy_unit_details": f"{plan.protection.in_words()} "
        f"{words.NEIGHBOURS[plan.protection.neighbours]}",
        "privacy_parameters": parameters,
        "privacy_parameters_details": " ".join(guarantee_in_words(plan)),
    }


def _post_processing(plan: Plan) -> str:
    sums = words.SUMS if plan.method.adds_up else ""
    return words.POST_PROCESSING.format(method=plan.method.in_words, sums=sums)


def _composition(plan: Plan) -> str:
    shares = "; ".join(
        words.SHARE.format(level=q.level, query=q.query, share=q.share)
        for q in plan.queries
        if q.noise is not None
    )
    return words.COMPOSITION.format(shares=shares)


def _mechanisms(plan: Plan, version: str) -> str:
    laws = sorted({q.noise.name.replace("_", " ") for q in plan.queries if q.noise is not None})
    return words.MECHANISMS.format(laws=" and ".join(laws).capitalize(), version=version)
