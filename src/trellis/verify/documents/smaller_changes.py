"""What changes smaller than a whole record cost: of location only, or of one attribute."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.mechanisms import Mechanism, mechanism
from trellis.verify.documents.figures import Figures, Query
from trellis.verify.files.run_files import RunFiles
from trellis.wording import privacy as words

Change = tuple[Mechanism, ...]
"""The noise of the cells that move, one for each."""


def smaller_changes(run: RunFiles, figures: Figures) -> list[dict[str, Any]]:
    """As privacy.json states them: for counts of records, under `replace`."""
    plan = run.plan
    if plan["kind"] in ("group_sizes", "flows") or plan["protection"]["neighbours"] != "replace":
        return []
    kept = words.STILL_KEPT if plan["protection"]["required"] else ""
    names, costs = [level["level"] for level in plan["levels"]], []
    within = plan["protection"]["within"]
    for level in names[0 if within is None else names.index(within) : -1]:
        below = _dividing(run, names.index(level))
        curve = _location(run, figures, lambda q, below=below: q["level"] in below)
        costs.append((words.LOCATION.format(level=level), words.LOCATION_IN_WORDS, curve))
    for attribute in plan["schema"] if len(plan["schema"]) > 1 else ():
        curve = _attribute(run, figures, lambda q, a=attribute: _separates(plan, q["query"], a))
        costs.append((words.ATTRIBUTE.format(attribute=attribute), words.ATTRIBUTE_IN_WORDS, curve))
    return [
        {
            "change": change,
            "epsilon_at_delta": {figures.delta: figures.of_part(curve)},
            "in_words": in_words + kept,
        }
        for change, in_words, curve in costs
    ]


def _dividing(run: RunFiles, level: int) -> list[str]:
    """The measured levels on which two leaves of one area of a published level can differ."""
    first = level + 1 if "spine" not in run.plan else run.plan["spine"]["keeps_whole"][level]
    levels = run.plan.get("spine", run.plan)["levels"]
    return [level["level"] for level in levels[first:]]


def _separates(plan: dict[str, Any], query: str, attribute: str) -> bool:
    """Whether some values of an attribute lie in different cells of a query."""
    schema, recodes = plan["schema"], plan.get("recodes", {})
    factors = {"total": [], "detailed": list(schema)}.get(query, query.split(" * "))
    labels = [
        len(schema[name]) if name in schema else len(recodes[name]["groups"])
        for name in factors
        if (name if name in schema else recodes[name]["attribute"]) == attribute
    ]
    return any(n > 1 for n in labels)


def _location(run: RunFiles, figures: Figures, meets: Callable[[Query], bool]) -> WorstCase | None:
    """A record leaves one path and joins another."""
    parts = _parts(figures, meets)
    return _worst(run, [a + b for a, b in combinations_with_replacement(parts, 2)])


def _attribute(run: RunFiles, figures: Figures, meets: Callable[[Query], bool]) -> WorstCase | None:
    """A record leaves one cell and joins another, on one path."""
    return _worst(run, [part + part for part in _parts(figures, meets)])


def _parts(figures: Figures, meets: Callable[[Query], bool]) -> list[Change]:
    """The noise of the queries that a change meets, for each kind of path that meets any."""
    kinds = {}
    for path in figures.paths:
        laws = [q["noise"] for q in path if meets(q)]
        noise = sorted((law["law"], law["parameter"]) for law in laws)
        kinds[tuple(noise)] = tuple(mechanism(*law) for law in noise)
    return [part for part in kinds.values() if part]


def _worst(run: RunFiles, changes: list[Change]) -> WorstCase | None:
    if not changes:
        return None
    m = run.plan["protection"]["max_contribution"]
    cases = {Composition.of([Coordinates(noise, 1, m) for noise in change]) for change in changes}
    laws = {noise for change in changes for noise in change}
    return WorstCase(tuple(cases), all(one_cell_is_worst(noise, 1, m) for noise in laws))
