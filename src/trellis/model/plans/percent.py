"""Confidence as readers see it."""

from __future__ import annotations

from fractions import Fraction

from trellis.wording.kinds import PERCENT


def in_percent(confidence: Fraction | float) -> str:
    return PERCENT.format(share=100 * float(confidence))
