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
from trellis.privacy.neighbours import Neighbours

TO_FILL_IN = "To be filled in."
"""Stands where the registry wants a text that only the curator knows."""

_NEIGHBOURS = {
    Neighbours.ADD_REMOVE: "Two data sets are neighbours if one has the records of one more "
    "unit of protection.",
    Neighbours.REPLACE: "Two data sets are neighbours if the records of one unit of protection "
    "differ.",
}


def deployment_record(plan: Plan, date: str, version: str) -> dict[str, Any]:
    """The record as nested fields; `date` is YYYY-MM-DD."""
    return {
        "url_slug": re.sub(r"[\W_]+", "-", plan.release.lower()).strip("-"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(plan, date),
            "dp_variant": _variant(plan),
            "privacy_loss": _privacy_loss(plan),
            "deployment_model": _model(),
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
    head = (
        "# Privacy record in the fields of the OpenDP deployments registry.\n"
        "# For the curator to fill in, in a copy: " + ", ".join(open_fields(record)) + ".\n"
        "# The sector (deployment.basic.data_product_sector) may be added.\n"
    )
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
    levels = ", ".join(f"{n} ({a:,})" for n, a in zip(plan.levels, plan.areas, strict=True))
    what = plan.design.described
    return {
        "name": plan.release,
        "data_curators": [TO_FILL_IN],
        "description": f"{what} for every area of the levels (number of areas): {levels}; "
        f"{plan.schema.n_cells:,} cell(s) for each area{_margins(plan)}.",
        "intended_use": TO_FILL_IN,
        "data_product_type": "Summary statistics",
        "data_product_region": TO_FILL_IN,
        "publication_date": date,
    }


def _margins(plan: Plan) -> str:
    return f", with {in_percent(plan.confidence)} intervals" if plan.method.has_variances else ""


def _variant(plan: Plan) -> dict[str, Any]:
    protection = plan.protection
    domain = (
        f"All tables in which a {protection.unit} has at most {protection.max_contribution} "
        "record(s), over the public list of areas and categories."
    )
    return {
        "variant_name": "Zero-concentrated DP" if plan.privacy.pure_epsilon is None else "Pure DP",
        "data_domain": " ".join([domain, *protection.restrictions]),
        "unprotected_quantities": " ".join(unprotected_in_words(plan)),
    }


def _model() -> dict[str, str]:
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the records, adds noise once, and publishes.",
        "actors": TO_FILL_IN,
        "release_type": "One release",
        "release_type_details": "This record is about one release. The curator's ledger is charged "
        "before noise is drawn, and adds up what other releases of the same records cost.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
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
        f"{_NEIGHBOURS[plan.protection.neighbours]}",
        "privacy_parameters": parameters,
        "privacy_parameters_details": " ".join(guarantee_in_words(plan)),
    }


def _post_processing(plan: Plan) -> str:
    sums = " Areas add up to the area above them." if plan.method.adds_up else ""
    return (
        f"{plan.method.in_words}{sums} Computed from the noisy measurements and exact totals alone."
    )


def _composition(plan: Plan) -> str:
    shares = "; ".join(
        f"{q.level}, {q.query}: {q.share}" for q in plan.queries if q.noise is not None
    )
    return (
        "Sequential over levels and queries; within one, the areas partition the records. Added up "
        "exactly, in fractions; epsilon at a delta is the exact one of the composed noise. Shares "
        f"of the budget: {shares}."
    )


def _mechanisms(plan: Plan, version: str) -> str:
    laws = sorted({q.noise.name.replace("_", " ") for q in plan.queries if q.noise is not None})
    return (
        f"{' and '.join(laws).capitalize()} noise on whole numbers, sampled exactly with integer "
        "arithmetic from the operating system's random bits; no floating-point number decides on "
        "noise or budget. Exact parameters of each level are in privacy.json. Made with Trellis "
        f"{version}."
    )
