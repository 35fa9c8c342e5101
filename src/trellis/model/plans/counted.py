"""What the numbers of a release are numbers of: the units that tables and messages state."""

from __future__ import annotations

from fractions import Fraction

from trellis.model.plans.size_mechanisms import GROUP_SIZES
from trellis.model.trees.flows import FLOWS


def counted_in(kind: str) -> str:
    """What a published count, its noise and its errors are in."""
    return {GROUP_SIZES: "groups", FLOWS: "trips"}.get(kind, "records")


def counted_for(kind: str) -> str:
    """What has a count of its own."""
    return "pairs" if kind == FLOWS else "areas"


def in_percent(confidence: Fraction | float) -> str:
    return f"{100 * float(confidence):g} %"
