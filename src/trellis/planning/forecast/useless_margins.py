"""Warnings about margins of error that are of no use, known before anything is spent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy

MOST_TIMES_THE_BEST = 20
"""A margin is of no use if it is more than this many times that of the best table."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The typical expected standard error of a published table: of a level, or of areas.

    `typical_count` is the median of its counts above zero in a prior, where there is one.
    """

    place: str
    std_error: float
    query: str | None = None
    is_area: bool = False
    typical_count: float | None = None

    @property
    def label(self) -> str:
        """With its query, where a level has several tables."""
        of = "" if self.query is None else f", {self.query}"
        return f"{'areas' if self.is_area else 'level'} {self.place!r}{of}"


def published_margins(plan: Plan, hierarchy: Hierarchy) -> list[Margin]:
    """Of a plan with its expected errors; none where these are not known beforehand."""
    if plan.design.by_query:
        from trellis.planning.forecast.outlook import Outlook  # loads a compiler

        outlook = Outlook.of(plan, hierarchy)
        if outlook is None:
            return []
        tables = zip(outlook.published, outlook.std_errors().values(), strict=True)
        return [Margin(level, error, query) for (level, query), error in tables]
    levels = [Margin(e.level, e.median) for e in plan.forecast.errors or ()]
    areas = [e for e in plan.forecast.effects or () if not e.is_level]
    return levels + [Margin(e.name, e.error_after, is_area=True) for e in areas]


def useless_margins(plan: Plan, margins: Sequence[Margin]) -> list[str]:
    """A sentence for every table whose margin is of no use, and what to do."""
    noisy = [margin for margin in margins if margin.std_error > 0]
    if not noisy:
        return []
    best = min(noisy, key=lambda margin: margin.std_error)
    found = []
    for margin in noisy:
        why, times = [], margin.std_error / best.std_error
        if times > MOST_TIMES_THE_BEST:
            why.append(f"{times:,.0f} times that of {best.label} ({_number(best.std_error)})")
        if margin.typical_count is not None and margin.std_error > margin.typical_count:
            why.append(f"above the median count of the prior ({_number(margin.typical_count)})")
        if why:
            size = f"{_number(margin.std_error)} {plan.design.counted_in}"
            found.append(
                f"{margin.label}: the expected standard error of a count is {size}, "
                f"{' and '.join(why)}. Give it {plan.design.more_budget}."
            )
    return found


def without_target(plan: Plan, margins: Sequence[Margin], targets: Collection[str]) -> list[str]:
    """One sentence on the levels and areas that targets leave out, where targets decide."""
    worst: dict[str, Margin] = {}
    for margin in margins:
        known = worst.get(margin.place)
        if margin.place not in targets and (known is None or margin.std_error > known.std_error):
            worst[margin.place] = margin
    left = [margin for margin in worst.values() if margin.std_error > 0]
    if not left:
        return []
    named = ", ".join(f"{m.place} (standard error {_number(m.std_error)})" for m in left)
    said = f"accuracy has no target for {named}, in {plan.design.counted_in}. The targets decide"
    return [f"{said} the budget, and these get what is left: add a target for each that you need."]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
