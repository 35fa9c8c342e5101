"""Kinds of values in a spec: exact fractions and safe names."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, InstanceOf, PlainSerializer, StringConstraints

from trellis.model.plans.shares import Shares

MOST_DIGITS = 60
MOST_CELL_NAME = 1000


def to_fraction(value: Any) -> Fraction:
    """An exact fraction from 3, 0.25, 1e-10, 1/15 or their text."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("a number such as 1, 0.25, 1e-10 or 1/15 is needed")
    text = str(value).strip()
    number = _parse(text) if len(text) <= MOST_DIGITS else None
    if number is None:
        raise ValueError(f"{text[:MOST_DIGITS]!r} is not a number such as 1, 0.25, 1e-10 or 1/15")
    return number


def _parse(text: str) -> Fraction | None:
    try:
        # The exponent is checked first: Fraction("1e999999999") would fill the memory.
        if abs(int(text.lower().partition("e")[2] or 0)) > 100:
            return None
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


Exact = Annotated[Fraction, BeforeValidator(to_fraction), PlainSerializer(str, return_type=str)]
"""A fraction that is never rounded, written as text."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\w[\w .-]{0,79}$")]
"""A name that is safe in file names: letters, digits, space, dot, hyphen, underscore."""

CellName = Annotated[str, AfterValidator(lambda name: check_cell_name(name.strip()))]
"""A cell of a wide table: its category, or one of each attribute with commas between."""


def check_cell_name(name: str) -> str:
    if not name or not name.isprintable() or len(name) > MOST_CELL_NAME:
        raise ValueError(f"a cell is named by 1 to {MOST_CELL_NAME} printable characters")
    return name


def check_path(text: str) -> str:
    """A path that people can read."""
    if not text or not text.isprintable():
        raise ValueError("a path of printable characters is needed")
    if len(text) > 4000 or any(len(part.encode()) > 255 for part in text.split("/")):
        raise ValueError("this path is too long")
    return text


PathText = Annotated[str, AfterValidator(check_path)]
"""A path as people write it."""


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by links of any kind too."""
    if one.is_file() and other.is_file():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def to_shares(value: Any) -> Shares:
    """Shares from `uniform`, a mapping of fractions, or `{weights: mapping}`."""
    if isinstance(value, Shares):
        value = _write_shares(value)
    if value == "uniform":
        return Shares()
    are_weights = isinstance(value, dict) and list(value) == ["weights"]
    values = value["weights"] if are_weights else value
    if not isinstance(values, dict) or not values:
        raise ValueError("write uniform, {level: fraction, ..} or {weights: {level: number, ..}}")
    return Shares({str(k): _share(k, v) for k, v in values.items()}, are_weights)


def _share(name: Any, value: Any) -> Fraction:
    try:
        return to_fraction(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _write_shares(shares: Shares) -> Any:
    if shares.values is None:
        return "uniform"
    values = {level: str(value) for level, value in shares.values.items()}
    return {"weights": values} if shares.are_weights else values


SharesField = Annotated[
    InstanceOf[Shares], BeforeValidator(to_shares), PlainSerializer(_write_shares)
]
"""Shares by level, as written in a spec."""
