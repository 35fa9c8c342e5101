"""The privacy record in the field names of the OpenDP deployments registry: `deployment.yaml`.

Fields that a program cannot know, such as who publishes and what for, are null, and the file's
head names them: a curator fills them in before handing the record to the registry.
"""

from __future__ import annotations

from typing import Any

import yaml

from trellis.model.plan import Plan
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.model.statement import guarantee_in_words, stated_delta, unprotected_in_words
from trellis.privacy.guarantee import round_up
from trellis.privacy.neighbours import Neighbours

_METRICS = {
    Neighbours.ADD_REMOVE: "Number of units of protection added or removed.",
    Neighbours.REPLACE: "Number of units of protection whose records are replaced.",
}
_POST_PROCESSING = {
    "gls": "Best linear unbiased estimates from all measurements, consistent over all levels.",
    "gls_topdown": "Best linear unbiased estimates from all measurements, then the nearest whole "
    "non-negative counts.",
    "topdown": "From the root down, the whole non-negative counts nearest to the measurements.",
    "bottomup": "Whole non-negative counts of the smallest areas, added up.",
}


def deployment_record(plan: Plan, date: str, version: str) -> dict[str, Any]:
    """The record as nested fields; `date` is YYYY-MM-DD."""
    return {
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": _product(plan, date),
            "dp_flavor": _flavor(plan),
            "privacy_loss": _privacy_loss(plan),
            "model": {
                "model_name": "Central",
                "actors": None,
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": _post_processing(plan),
                "composition": _composition(plan),
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": None,
                "mechanisms": _mechanisms(plan, version),
                "justification": None,
            },
            "resources": {"sources": None, "registry_authors": None},
        },
    }


def deployment_yaml(plan: Plan, date: str, version: str) -> str:
    record = deployment_record(plan, date, version)
    head = (
        "# Privacy record in the fields of the OpenDP deployments registry.\n"
        "# For the curator to fill in, in a copy: " + ", ".join(open_fields(record)) + ".\n"
    )
    return head + yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=100)


def open_fields(record: dict[str, Any], place: str = "") -> list[str]:
    """The fields that are null, as dotted names."""
    found = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += open_fields(value, f"{place}{name}.")
        elif value is None:
            found.append(place + name)
    return found


def _product(plan: Plan, date: str) -> dict[str, Any]:
    what = "Groups by size" if plan.kind == GROUP_SIZES else "Counts of records"
    levels = ", ".join(f"{n} ({a:,})" for n, a in zip(plan.levels, plan.areas, strict=True))
    return {
        "name": plan.release,
        "data_curators": None,
        "intended_use": None,
        "data_product_type": "Summary statistics",
        "data_product_region": None,
        "description": f"{what} for every area of the levels (number of areas): {levels}; "
        f"{plan.schema.n_cells:,} cell(s) for each area, with margins of error.",
        "publication_date": date,
        "data_product_sector": None,
    }


def _flavor(plan: Plan) -> dict[str, Any]:
    guarantee, protection = plan.privacy, plan.protection
    pure = guarantee.pure_epsilon
    domain = (
        f"All tables in which a {protection.unit} has at most {protection.max_contribution} "
        "record(s), over the public list of areas and categories."
    )
    return {
        "name": "Zero-concentrated DP" if pure is None else "Pure DP",
        "input_metric": _METRICS[protection.neighbours],
        "bound_on_input_distance": "1",
        "output_measure": "Renyi divergence of every order, as a multiple of the order"
        if pure is None
        else "Max divergence",
        "bound_on_output_distance": str(guarantee.rho if pure is None else pure),
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
        "privacy_unit_description": plan.protection.in_words(),
        "privacy_parameters": parameters,
        "privacy_parameters_description": " ".join(guarantee_in_words(plan)),
    }


def _post_processing(plan: Plan) -> str:
    method = _POST_PROCESSING.get(
        plan.method, f"Whole non-negative numbers fitted to the measurements by {plan.method}."
    )
    sums = " Areas add up to the area above them." if plan.adds_up else ""
    return f"{method}{sums} Computed from the noisy measurements and exact totals alone."


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
