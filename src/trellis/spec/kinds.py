"""Which keys a kind of release needs, and which it has no use for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel

from trellis.model.plans.size_mechanisms import GROUP_SIZES
from trellis.model.trees.flows import FLOWS
from trellis.spec.flows import flow_faults

if TYPE_CHECKING:
    from trellis.spec.spec import Spec

_SIZE_KEYS = (
    "mechanism", "group_register", "sizes", "data.group", "data.quantity", "data.max_quantity",
    "data.size", "data.groups", "unprotected.groups", "estimate.weights",
)  # fmt: skip
_HISTOGRAM_KEYS = (
    "schema", "recodes", "strategy", "structural_zeros", "constraints", "edit_rules",
    "data.attributes", "estimate.edit_rules", "estimate.passes", "output.tables",
    "output.microdata", "output.measurements",
)  # fmt: skip
_COUNT_KEYS = (
    "data.cells", "unprotected.totals", "estimate.method", "areas", "spine", *_HISTOGRAM_KEYS,
)  # fmt: skip
_FLOW_KEYS = (
    "tree", "estimator", "destinations", "trips", "attributes", "data.origin", "data.destination",
    "data.unit", "estimate.penalty",
)  # fmt: skip
_FOREIGN = {
    "counts": (*_SIZE_KEYS, *_FLOW_KEYS),
    "group_sizes": (*_COUNT_KEYS, "data.count", *_FLOW_KEYS),
    "flows": (*_COUNT_KEYS, "data.area", *_SIZE_KEYS),
}
_MISSING = {
    "counts": {"data.area": ""},
    "group_sizes": {
        "sizes": ": declare the largest size, such as sizes: {cap: 20, top_code: true}; it must "
        "not be read off the records",
        "group_register": ": the groups that exist, and where, from a public source; the records "
        "do not tell which groups have nobody",
        "privacy.shares": ": how the budget is split over the levels, such as uniform or "
        "{county: 1/3, tract: 2/3}; it has no default for this kind",
    },
    "flows": {
        "data.origin": ": the column with the area where a trip begins",
        "data.destination": ": the column with the area where it ends",
    },
}
_FORMS = {
    "group": ("data.size", "data.groups"),
    "size": ("data.quantity",),
}
_NEEDED = {
    "group": ("group_register.group",),
    "size": ("data.area", "data.groups", "group_register.groups"),
}
"""By the form of the data: keys that do not go with it, and keys that it needs."""


def kind_faults(spec: Spec) -> Iterator[str]:
    """Keys of another kind, and keys that are missing."""
    kind = spec.kind
    for key in _FOREIGN[kind]:
        if _is_set(spec, key) and not _is_default(spec, key):
            yield f"`{key}` is not a key of `kind: {kind}`. Take it out, or change the kind."
    for key, hint in _MISSING[kind].items():
        if not _is_set(spec, key):
            yield f"Missing key {key!r}{hint}."
    if kind == GROUP_SIZES:
        yield from _group_size_faults(spec)
    if kind == FLOWS:
        yield from flow_faults(spec)


def foreign_defaults(kind: str, section: str) -> set[str]:
    """Keys of a section that this kind has no use for; they hold defaults."""
    paths = (path.split(".") for path in _FOREIGN[kind])
    return {path[1] for path in paths if path[0] == section and len(path) == 2}


def _group_size_faults(spec: Spec) -> Iterator[str]:
    if not spec.unprotected.groups:
        yield (
            "The number of groups of every area is public by the register and published exactly. "
            "Say so: unprotected: {groups: true}."
        )
    is_records = _is_set(spec, "data.group")
    if is_records == _is_set(spec, "data.size"):
        yield (
            "data: give group (one row per record, with the group it belongs to), or area, size "
            "and groups (a table of how many groups have which size)."
        )
        return
    form = "group" if is_records else "size"
    for key in filter(partial(_is_set, spec), _FORMS[form]):
        yield f"{key} does not go with data.{form}."
    for key in (key for key in _NEEDED[form] if not _is_set(spec, key)):
        yield (
            f"Missing key {key!r}: records go with a register of groups (group), tables of "
            "sizes with the declared number of groups of every area (groups)."
        )
    bounded = not _is_default(spec, "data.max_quantity")
    if bounded and is_records and not _is_set(spec, "data.quantity"):
        yield "data.max_quantity goes with data.quantity: without it, each record adds 1."


def _is_set(spec: BaseModel, path: str) -> bool:
    """Whether the spec itself has the key, not only a default for it."""
    *sections, key = path.split(".")
    for section in sections:
        value = getattr(spec, section)
        if value is None:
            return False
        spec = value
    if getattr(spec, key) is None:
        return False
    return key in spec.model_fields_set or not _is_default(spec, key)


def _is_default(spec: BaseModel, path: str) -> bool:
    """A default that is written out, as a copy of a spec has it, says nothing."""
    *sections, key = path.split(".")
    for section in sections:
        spec = getattr(spec, section)
    return getattr(spec, key) == type(spec).model_fields[key].default
