"""The deployments registry's record, state of July 2026: names, required ones, kinds of values.

Written from the names and kinds of its fields alone; no other keys are allowed anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value))


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


_BASIC = {
    "name": _is_text,
    "data_curators": _is_list,
    "description": _is_text,
    "intended_use": _is_text,
    "data_product_type": _one_of(
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
        "Interactive API", "SQL queries"),
    "data_product_region": _is_text,
    "publication_date": _is_date,
    "data_product_sector": _one_of(
        "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
}  # fmt: skip
_PARAMETERS = {
    "epsilon": _is_number,
    "delta": lambda value: _is_number(value) or _is_text(value),
    "rho": _is_number,
}
DEPLOYMENT: dict[str, dict[str, Any]] = {
    "basic": _BASIC,
    "dp_variant": {
        "variant_name": _one_of(
            "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
        "data_domain": _is_text,
        "unprotected_quantities": _is_text,
    },
    "privacy_loss": {
        "privacy_unit": _is_text,
        "privacy_unit_details": _is_text,
        "privacy_parameters": _PARAMETERS,
        "privacy_parameters_details": _is_text,
    },
    "deployment_model": {
        "model_name": _one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
        "model_name_details": _is_text,
        "actors": _is_text,
        "release_type": _one_of("One release", "Many releases"),
        "release_type_details": _is_text,
        "data_source_type": _one_of("Static", "Dynamic"),
        "data_source_type_details": _is_text,
        "access_type": _one_of("Interactive", "Non-interactive"),
        "access_type_details": _is_text,
    },
    "accounting": {"post_processing": _is_text, "composition": _is_text},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": _is_text,
        "mechanisms": _is_text,
        "justification": _is_text,
    },
    "administrative": {"registry_authors": _is_list, "sources": _is_text, "notes": _is_text},
}  # fmt: skip
_RECORD: dict[str, Any] = {
    "url_slug": _is_text,
    "status": _one_of("Draft"),
    "tier": _one_of(1, 2, 3),
    "deployment": DEPLOYMENT,
}
_REQUIRED = {
    "": set(_RECORD),
    "deployment.": {"basic"},
    "deployment.basic.": set(_BASIC) - {"data_product_sector"},
    "deployment.administrative.": {"registry_authors"},
}


def faults(record: dict[str, Any]) -> list[str]:
    """What the registry would refuse, by the dotted names of fields."""
    return list(_faults(record, _RECORD, ""))


def _faults(content: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(content, dict):
        yield f"{place[:-1]} is not a mapping"
        return
    for name in sorted(set(content) - set(schema)):
        yield f"{place}{name} is not a field"
    for name in sorted(_REQUIRED.get(place, set()) - set(content)):
        yield f"{place}{name} is missing"
    for name, value in content.items():
        kind = schema.get(name)
        if isinstance(kind, dict):
            yield from _faults(value, kind, f"{place}{name}.")
        elif kind is not None and not kind(value):
            yield f"{place}{name} has a wrong value"
