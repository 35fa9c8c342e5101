"""Values of spec.yaml: fractions, shares, names of levels and queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from trellis.verify.files.safe_files import Unreadable

Spec = Mapping[str, Any]
Shares = dict[str, Fraction]


def fraction(text: Any) -> Fraction:
    """An exact number, from a text of a sensible length."""
    written = str(text)
    exponent = written.lower().partition("e")[2] or "0"
    if len(written) > 200 or abs(int(exponent)) > 100:
        raise ValueError("this is not a number that a run writes")
    return Fraction(written)


def level_names(hierarchy: Spec) -> list[str] | None:
    """The levels that the key `hierarchy` names; None if it leaves that to the file."""
    named = hierarchy.get("prefixes") or hierarchy.get("columns") or hierarchy.get("levels")
    return None if named is None else [*hierarchy.get("root", {}), *named]


def is_searched(value: Any) -> bool:
    """Whether shares are left to be computed."""
    return isinstance(value, Mapping) and "optimal" in value


def shares_over(value: Any, measurable: Sequence[str]) -> Shares:
    """`uniform`, fractions by name, or weights by name, in the order of the names."""
    if value == "uniform":
        return {name: Fraction(1, len(measurable)) for name in measurable}
    weighted = isinstance(value, Mapping) and list(value) == ["weights"]
    stated = {
        name: fraction(share) for name, share in (value["weights"] if weighted else value).items()
    }
    whole = sum(stated.values()) if weighted else 1
    if wrong := [name for name in stated if name not in measurable or stated[name] <= 0]:
        raise Unreadable(f"spec.yaml gives a share to {wrong[0]!r}, where nothing is measured")
    return {name: stated[name] / whole for name in measurable if name in stated}
