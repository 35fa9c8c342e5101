"""Which keys a kind of release needs, and which it has no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from trellis.errors import SpecError
from trellis.model.flows import FLOWS
from trellis.workflow.config.flows import check_flows

if TYPE_CHECKING:
    from trellis.workflow.config.spec import Spec

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


def check_kind(kind: str, spec: BaseModel) -> None:
    """Refuse keys of another kind, and name what is missing."""
    for key in _FOREIGN[kind]:
        if _is_set(spec, key) and not _is_default(spec, key):
            raise SpecError(f"{key} is no key of kind: {kind}. Take it out, or change the kind.")
    for key, hint in _MISSING[kind].items():
        if not _is_set(spec, key):
            raise SpecError(f"Missing key {key!r}{hint}.")
    if kind == "group_sizes":
        _check_group_sizes(spec)
    if kind == FLOWS:
        check_flows(cast("Spec", spec))


def foreign_defaults(kind: str, section: str) -> set[str]:
    """Keys of a section that this kind has no use for; they hold defaults."""
    paths = (path.split(".") for path in _FOREIGN[kind])
    return {path[1] for path in paths if path[0] == section and len(path) == 2}


def _check_group_sizes(spec: BaseModel) -> None:
    if not _value(spec, "unprotected.groups"):
        raise SpecError(
            "The number of groups of every area is public by the register and published exactly. "
            "Say so: unprotected: {groups: true}."
        )
    is_records = _is_set(spec, "data.group")
    if is_records == _is_set(spec, "data.size"):
        raise SpecError(
            "data: give group (one row per record, with the group it belongs to), or area, size "
            "and groups (a table of how many groups have which size)."
        )
    for key in _FORMS["group" if is_records else "size"]:
        if _is_set(spec, key):
            raise SpecError(f"{key} does not go with data.{'group' if is_records else 'size'}.")
    needed = ("group_register.group",) if is_records else (
        "data.area", "data.groups", "group_register.groups",
    )  # fmt: skip
    for key in needed:
        if not _is_set(spec, key):
            raise SpecError(
                f"Missing key {key!r}: records go with a register of groups (group), tables of "
                "sizes with the declared number of groups of every area (groups)."
            )
    bounded = _is_set(spec, "data.max_quantity") and not _is_default(spec, "data.max_quantity")
    if bounded and is_records and not _is_set(spec, "data.quantity"):
        raise SpecError(
            "data.max_quantity goes with data.quantity: without it, each record adds 1."
        )


def _is_set(spec: BaseModel, path: str) -> bool:
    """Whether the spec itself has the key, not only a default for it."""
    *sections, key = path.split(".")
    for section in sections:
        value = getattr(spec, section)
        if value is None:
            return False
        spec = value
    return key in spec.model_fields_set and getattr(spec, key) is not None


def _is_default(spec: BaseModel, path: str) -> bool:
    """A default that is written out, as a copy of a spec has it, says nothing."""
    *sections, key = path.split(".")
    for section in sections:
        spec = getattr(spec, section)
    return getattr(spec, key) == type(spec).model_fields[key].default


def _value(spec: BaseModel, path: str) -> object:
    section, key = path.split(".")
    return getattr(getattr(spec, section), key)
