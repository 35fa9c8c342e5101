"""Confidence as readers see it."""

from __future__ import annotations

from fractions import Fraction


def in_percent(confidence: Fraction | float) -> str:
    return f"{100 * float(confidence):g} %"
