"""Floats next to an exact number."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter


def float_above(exact: Fraction) -> float:
    """The least float that is not below `exact`."""
    nearest = float(exact)
    return nearest if nearest >= exact else nextafter(nearest, inf)


def float_below(exact: Fraction) -> float:
    """The greatest float that is not above `exact`."""
    nearest = float(exact)
    return nearest if nearest <= exact else nextafter(nearest, -inf)
