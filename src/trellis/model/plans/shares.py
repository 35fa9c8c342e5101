"""How a budget is split over the levels that are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import SpecError


@dataclass(frozen=True, slots=True)
class Shares:
    """A wish for shares: `values` None means uniform; weights are scaled to sum to one."""

    values: Mapping[str, Fraction] | None = None
    are_weights: bool = False

    def over(self, levels: Sequence[str], measurable: Sequence[str]) -> dict[str, Fraction]:
        """Exact shares by level, summing to one.

        `measurable` are the levels where noise is not wasted; a level that is left out is not
        measured, and estimated from the levels around it.
        """
        if self.values is None:
            return {level: Fraction(1, len(measurable)) for level in measurable}
        for level, value in self.values.items():
            _check_level(level, levels, measurable)
            if value <= 0:
                raise SpecError(
                    f"privacy.shares: the share of level {level!r} must be positive; "
                    "leave a level out to measure nothing there."
                )
        total = sum(self.values.values())
        if not self.are_weights and total != 1:
            raise SpecError(
                f"privacy.shares sum to {total}, not to 1. Give fractions such as 1/15 that sum "
                "to one, or write shares: {weights: {..}} to have them scaled."
            )
        return {level: self.values[level] / total for level in levels if level in self.values}


def _check_level(level: str, levels: Sequence[str], measurable: Sequence[str]) -> None:
    if level not in levels:
        raise SpecError(
            f"privacy.shares names level {level!r}; the hierarchy has {', '.join(levels)}."
        )
    if level not in measurable:
        raise SpecError(
            f"privacy.shares: a share for level {level!r} is wasted, because its totals are "
            "published exactly, or because the method does not use them. Give it to the levels "
            "below."
        )
