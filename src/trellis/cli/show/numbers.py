"""Numbers for people, in few characters: JSON has them in full."""

from __future__ import annotations

from fractions import Fraction

_LONGEST_FRACTION = 8
_MOST_DIGITS = 10_000_000
"""From here on, powers of ten are shorter."""


def rounded(value: float, digits: int = 3) -> str:
    """To this many significant digits, without powers of ten where a reader can do without."""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if 10**digits <= abs(float(text)) < _MOST_DIGITS else text


def short(value: Fraction) -> str:
    """The fraction, or an approximation where it is long."""
    return str(value) if len(str(value)) <= _LONGEST_FRACTION else rounded(float(value), 4)
