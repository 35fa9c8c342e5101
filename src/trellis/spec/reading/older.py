"""Spellings of earlier versions: read for this one, with a line that says what to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OLDER = {"mechanism": ("group_sizes",), "estimator": ("flows",), "attributes": ("flows",)}
"""Keys that are now written in another way, and the kinds that had them."""


def modern(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same spec as it is written now, and a line for each key that was not."""
    content, notes = dict(values), []
    kind = content.get("kind")
    if kind == "counts" and content.get("schema") is not None:
        content["kind"] = "histograms"
        notes.append("kind: counts with schema is now written kind: histograms.")
    if kind == "group_sizes" and "mechanism" in content:
        notes += _into_estimate(content, "mechanism")
    if kind == "flows" and "estimator" in content:
        notes += _into_estimate(content, "estimator")
    if kind == "flows" and content.get("unprotected") == {}:
        del content["unprotected"]  # as run folders have it that earlier versions wrote
    if kind == "flows" and "attributes" in content and "schema" not in content:
        content["schema"] = content.pop("attributes")
        notes.append("attributes is now written schema.")
    return content, tuple(notes)


def _into_estimate(content: dict[str, Any], key: str) -> list[str]:
    """The method has one name for all kinds: estimate.method."""
    estimate = content.get("estimate") or {}
    if not isinstance(estimate, Mapping) or "method" in estimate:
        return []  # the key is refused with the others that the kind does not have
    content["estimate"] = {**estimate, "method": content.pop(key)}
    return [f"{key} is now written estimate.method."]
