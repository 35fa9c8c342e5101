"""The keys that spec.yaml of a run may have: verification reads no others, and refuses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trellis.verify.files.safe_files import Unreadable

MOST_LETTERS = 500
_EXACT = re.compile(r"\d{1,100}(/\d{1,100})?")

ANY: None = None
"""A value that is compared with the plan, whatever its form."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a given form, for what no other file repeats."""

    fits: Callable[[Any], bool]


TEXT = Value(lambda x: isinstance(x, str) and len(x) <= MOST_LETTERS)
TEXTS = Value(lambda x: isinstance(x, list) and all(map(TEXT.fits, x)))
FLAG = Value(lambda x: isinstance(x, bool))
WHOLE = Value(lambda x: type(x) is int)
EXACT = Value(lambda x: isinstance(x, str) and _EXACT.fullmatch(x) is not None)
NAMED = "*"
"""Any name; what follows is the same for all of them."""

_HIERARCHY = {
    "public": FLAG, "code": {"column": TEXT, "width": WHOLE}, "prefixes": {NAMED: WHOLE},
    "columns": TEXTS, "parent_child": {"child": TEXT, "parent": TEXT, "width": WHOLE},
    "hrc": {"lead": TEXT}, "levels": TEXTS, "root": {NAMED: TEXT},
}  # fmt: skip
_COMMON = {
    "release": ANY,
    "kind": ANY,
    "dataset": ANY,
    "hierarchy": _HIERARCHY,
    "privacy": {
        "unit": ANY, "neighbours": ANY, "max_contribution": ANY, "mechanism": ANY,
        "budget": {"rho": ANY, "epsilon": ANY, "delta": ANY}, "shares": ANY,
    },
    "accuracy": [
        {"level": TEXT, "area": TEXT, "query": TEXT, "within": EXACT, "confidence": EXACT}
    ],
}  # fmt: skip
_OUTPUT = {"confidence": ANY, "csv": FLAG}
_COUNTS = {
    **_COMMON,
    "data": {"area": TEXT, "cells": {NAMED: TEXT}, "count": TEXT},
    "estimate": {"method": ANY},
    "output": _OUTPUT,
    "unprotected": {"totals": ANY},
    "areas": {
        NAMED: {
            "public": FLAG, "area": TEXT, "entity": TEXT, "level": TEXT, "within": TEXT,
            "outside": TEXTS, "skip_unknown": FLAG, "weight": EXACT,
        }
    },
    "spine": [
        {
            "branch": {"level": ANY, "inside": ANY},
            "regroup_leaves": {"areas": ANY, "fanout_cutoff": ANY, "cut": ANY},
            "group_level": {"level": ANY, "areas": ANY, "fanout_cutoff": ANY, "name": ANY},
            "bypass": {},
        }
    ],
}  # fmt: skip
_CONSTRAINT = {
    "name": TEXT, "level": TEXT, "area": TEXT, "query": TEXT, "equal": TEXT, "at_most": TEXT,
    "at_least": TEXT, "facilities": TEXT, "open_to_all": TEXTS, "group": TEXT, "binds": TEXT,
}  # fmt: skip

KEYS: dict[str, dict[str, Any]] = {
    "counts": _COUNTS,
    "histograms": {
        **{key: value for key, value in _COUNTS.items() if key not in ("areas", "spine")},
        "data": {
            "area": TEXT, "cells": {NAMED: TEXT}, "count": TEXT, "attributes": {NAMED: TEXT},
        },
        "estimate": {"method": ANY, "edit_rules": ANY, "passes": ANY},
        "output": {**_OUTPUT, "tables": {NAMED: ANY}, "microdata": ANY, "measurements": ANY},
        "schema": {NAMED: ANY},
        "recodes": {NAMED: {"of": ANY, "groups": {NAMED: ANY}}},
        "strategy": {NAMED: ANY},
        "constraints": [_CONSTRAINT],
        "structural_zeros": ANY,
        "edit_rules": ANY,
    },
    "group_sizes": {
        **_COMMON,
        "data": {
            "area": TEXT, "group": TEXT, "quantity": TEXT, "max_quantity": WHOLE, "size": TEXT,
            "groups": TEXT,
        },
        "estimate": {"method": ANY, "weights": {NAMED: ANY}},
        "output": _OUTPUT,
        "unprotected": {"groups": FLAG},
        "sizes": {"cap": ANY, "top_code": ANY},
        "group_register": {"area": TEXT, "group": TEXT, "groups": TEXT},
    },
    "flows": {
        **_COMMON,
        "data": {"origin": TEXT, "destination": TEXT, "count": TEXT, "unit": TEXT},
        "estimate": {"method": ANY, "penalty": ANY},
        "output": _OUTPUT,
        "tree": ANY,
        "destinations": _HIERARCHY,
        "trips": {"number": TEXT, "distinct": FLAG, "above": TEXT},
        "schema": {NAMED: ANY},
    },
}  # fmt: skip


def unknown_keys(content: Any, known: Any, place: str = "") -> Iterator[str]:
    """One line for each key that is not known, or whose value has another form."""
    if isinstance(known, Value):
        if not known.fits(content):
            yield f"spec.yaml has a value of another form in {place}"
    elif isinstance(known, list):
        for item in _is_a(list, content):
            yield from unknown_keys(item, known[0], place)
    elif isinstance(known, dict):
        for key, value in _is_a(Mapping, content).items():
            here = f"{place}.{key}" if place else str(key)
            if key not in known and NAMED not in known:
                yield f"spec.yaml has the unknown key {here}"
            else:
                yield from unknown_keys(value, known.get(key, known.get(NAMED)), here)


def _is_a(form: Any, content: Any) -> Any:
    if not isinstance(content, form):
        raise Unreadable("spec.yaml has lists or mappings in other places than a run writes")
    return content
