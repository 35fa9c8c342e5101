"""Where two documents differ, as places in them; values are never quoted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

CLOSE = 1e-9
"""Relative difference of real numbers that rounding may leave."""


def differences(found: Any, expected: Any, place: str = "") -> Iterator[str]:
    """The places of whatever is missing, strange, of another type or of another value."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            inside = f"{place}.{key}" if place else str(key)
            if key not in found or key not in expected:
                yield inside if key in expected else f"{place}, which has a key that no run writes"
            else:
                yield from differences(found[key], expected[key], inside)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif type(found) is not type(expected) or not _equal(found, expected):
        yield place


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=CLOSE, abs_tol=0.0)
    return found == expected
