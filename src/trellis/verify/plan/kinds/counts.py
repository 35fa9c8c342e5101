"""Counts: what spec.yaml asks for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.noise import Asked
from trellis.verify.plan.reading import Shares, Spec, is_searched, shares_over
from trellis.verify.plan.spines import spine_queries


def counts(run: RunFiles, levels: list[str]) -> tuple[dict[str, Any], list[Asked]]:
    """What plan.json must say, and what is asked."""
    spec = run.spec
    cells = list(spec["data"].get("cells") or ["total"])
    exact = exact_levels(spec, levels)
    query = "total" if len(cells) == 1 else "detailed"
    stated: dict[str, Any] = {
        "schema": {"cell": cells},
        "unprotected_totals": exact,
        "protection": protection(spec, within=exact[-1] if len(exact) > 1 else None),
    }
    totals = [Asked(level, "total") for level in exact]
    if spec.get("spine"):
        return stated, totals + spine_queries(run, query)
    single, method = len(cells) == 1, spec["estimate"]["method"]
    measurable = [name for name in levels if not (single and name in exact)]
    if method == "bottomup":
        measurable = levels[-1:]
    shares = level_shares(run, measurable)
    return stated, totals + [Asked(level, query, share) for level, share in shares.items()]


def exact_levels(spec: Spec, levels: Sequence[str]) -> list[str]:
    """Under replace the root's total never moves; exact totals of a level give those above it."""
    if spec["privacy"]["neighbours"] == "add_remove":
        return []
    deepest = max((levels.index(name) for name in spec["unprotected"]["totals"]), default=0)
    return list(levels[: deepest + 1])


def protection(
    spec: Spec, within: str | None = None, required: Sequence[str] = ()
) -> dict[str, Any]:
    """Who is protected, and what the records must keep."""
    privacy = spec["privacy"]
    return {
        "unit": privacy["unit"],
        "neighbours": privacy["neighbours"],
        "max_contribution": privacy["max_contribution"],
        "within": within,
        "required": list(required),
    }


def level_shares(run: RunFiles, measurable: Sequence[str]) -> Shares:
    """As stated; where they are computed, any shares of these levels that plan.json has."""
    stated = run.spec["privacy"]["shares"]
    if is_searched(stated) or run.spec.get("accuracy"):
        return planned_shares(run, measurable)
    return shares_over(stated, measurable)


def planned_shares(run: RunFiles, measurable: Sequence[str]) -> Shares:
    """The shares by level that plan.json has; valid if they are those of measurable levels."""
    found: Shares = {}
    for q in run.plan["queries"]:
        if q["noise"] is not None:
            found[q["level"]] = found.get(q["level"], 0) + Fraction(q["share"])
    return shares_over({name: str(share) for name, share in found.items()}, measurable)
