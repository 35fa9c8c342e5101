"""What a release says about its method and its confidence."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trellis.wording.kinds import FITTED, METHODS, PERCENT


def method_in_words(name: str) -> str:
    return METHODS.get(name) or FITTED.format(method=name)


def confidence(plan: dict[str, Any]) -> str:
    """In percent."""
    return PERCENT.format(share=100 * float(Fraction(plan["confidence"])))
