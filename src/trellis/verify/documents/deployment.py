"""`deployment.yaml`: every field follows from plan.json. Yields what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from math import prod
from typing import Any

import yaml

from trellis.verify.documents.differences import differences
from trellis.verify.documents.figures import Figures
from trellis.verify.documents.formats import has_todays_words, require_known_kind
from trellis.verify.documents.methods import confidence, method_in_words
from trellis.verify.documents.statement import guarantee, protected, restrictions, unprotected
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import MOST_YAML_BYTES, read_text, read_yaml
from trellis.wording import deployment as words
from trellis.wording.kinds import KINDS

NAME = "deployment.yaml"
OPEN_FIELDS = (
    "deployment.basic.data_curators", "deployment.basic.intended_use",
    "deployment.basic.data_product_region", "deployment.deployment_model.actors",
    "deployment.implementation.preprocessing_and_hyperparameter_tuning",
    "deployment.implementation.justification", "deployment.administrative.registry_authors",
    "deployment.administrative.sources",
)  # fmt: skip


def deployment(run: RunFiles) -> Iterator[str]:
    """Every field of the record for the deployments registry follows from the plan."""
    require_known_kind(run)
    if not has_todays_words(run, NAME):
        return
    found = read_yaml(run.path, NAME)
    day = found["deployment"]["basic"]["publication_date"]
    if not isinstance(day, str) or date.fromisoformat(day).isoformat() != day:
        yield f"{NAME} has no date of publication"
    expected = _record(run, day)
    wrong = sorted(differences(found, expected))
    for place in wrong:
        yield f"{NAME} does not state what follows from plan.json in {place}"
    head = words.HEAD.format(open_fields=", ".join(OPEN_FIELDS))
    text = head + yaml.safe_dump(expected, sort_keys=False, allow_unicode=True, width=100)
    if not wrong and read_text(run.path, NAME, MOST_YAML_BYTES) != text:
        yield f"{NAME} has comments, or a form, that no run writes"


def _record(run: RunFiles, day: str) -> dict[str, Any]:
    plan, figures = run.plan, Figures(run)
    return {
        "url_slug": re.sub(r"[\W_]+", "-", plan["release"].lower()).strip("-"),
        "status": words.STATUS,
        "tier": words.TIER,
        "deployment": {
            "basic": {
                "name": plan["release"],
                "data_curators": [words.TO_FILL_IN],
                "description": _description(run),
                "intended_use": words.TO_FILL_IN,
                "data_product_type": words.PRODUCT_TYPE,
                "data_product_region": words.TO_FILL_IN,
                "publication_date": day,
            },
            "dp_variant": _variant(plan, figures),
            "privacy_loss": _privacy_loss(plan, figures),
            "deployment_model": dict(words.MODEL),
            "accounting": _accounting(run, figures),
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": words.TO_FILL_IN,
                "mechanisms": _mechanisms(run, figures),
                "justification": words.TO_FILL_IN,
            },
            "administrative": {
                "registry_authors": [words.TO_FILL_IN],
                "sources": words.TO_FILL_IN,
            },
        },
    }


def _description(run: RunFiles) -> str:
    plan = run.plan
    levels = [words.LEVEL.format(level=x["level"], areas=x["areas"]) for x in plan["levels"]]
    margins = words.MARGINS.format(confidence=confidence(plan)) if run.has_centres else ""
    return words.DESCRIPTION.format(
        what=KINDS[plan["kind"]]["described"],
        levels=", ".join(levels),
        cells=prod(len(categories) for categories in plan["schema"].values()),
        margins=margins,
    )


def _variant(plan: dict[str, Any], figures: Figures) -> dict[str, Any]:
    protection = plan["protection"]
    domain = words.DOMAIN.format(unit=protection["unit"], most=protection["max_contribution"])
    return {
        "variant_name": words.CONCENTRATED if figures.pure is None else words.PURE,
        "data_domain": " ".join([domain, *restrictions(plan)]),
        "unprotected_quantities": " ".join(unprotected(plan)),
    }


def _privacy_loss(plan: dict[str, Any], figures: Figures) -> dict[str, Any]:
    parameters = {"epsilon": float(figures.pure)} if figures.pure is not None else {
        "rho": float(figures.rho),
        "epsilon": float(figures.epsilon),
        "delta": float(figures.delta),
    }  # fmt: skip
    who = protected(plan, number_is_known=True)
    return {
        "privacy_unit": plan["protection"]["unit"],
        "privacy_unit_details": f"{who} {words.NEIGHBOURS[plan['protection']['neighbours']]}",
        "privacy_parameters": parameters,
        "privacy_parameters_details": " ".join(guarantee(plan, figures)),
    }


def _accounting(run: RunFiles, figures: Figures) -> dict[str, str]:
    shares = [
        words.SHARE.format(level=q["level"], query=q["query"], share=Fraction(q["share"]))
        for q in figures.noisy
    ]
    sums = words.SUMS if run.adds_up else ""
    method = method_in_words(run.plan["method"])
    return {
        "post_processing": words.POST_PROCESSING.format(method=method, sums=sums),
        "composition": words.COMPOSITION.format(shares="; ".join(shares)),
    }


def _mechanisms(run: RunFiles, figures: Figures) -> str:
    laws = " and ".join(sorted({q["noise"]["law"].replace("_", " ") for q in figures.noisy}))
    return words.MECHANISMS.format(laws=laws.capitalize(), version=run.manifest["trellis"])
