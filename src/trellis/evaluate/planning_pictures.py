"""A plan as pictures: where the budget goes, and what more or less of it would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trellis.evaluate.charts import Axis, Series, bar_chart, line_chart


def shares_picture(title: str, shares: Mapping[str, float]) -> str:
    """The part of the budget that each level gets."""
    bars = [(level, 100 * share) for level, share in shares.items()]
    return bar_chart(f"Share of the budget: {title}", " %", bars)


def error_picture(
    unit: str, budgets: Sequence[float], errors: Mapping[str, Sequence[float]]
) -> str:
    """The median standard error of every level against the budget, in the plan's shares."""
    lines = [Series(level, budgets, values) for level, values in errors.items()]
    return line_chart(
        "Error against budget", Axis(unit, log=True), Axis("median standard error", log=True), lines
    )
