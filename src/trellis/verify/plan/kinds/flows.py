"""Flows: what spec.yaml asks for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from trellis.verify.files.flow_files import both_sides, n_cells, tree_steps
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.kinds.counts import protection
from trellis.verify.plan.noise import Asked
from trellis.verify.plan.reading import Spec, fraction, level_names, shares_over


def flows(run: RunFiles, levels: list[str]) -> tuple[dict[str, Any], list[Asked]]:
    """What plan.json must say, and what is asked."""
    spec, trips = run.spec, run.spec["privacy"]["max_contribution"]
    fixed = has_exact_number(spec) and spec["privacy"]["neighbours"] == "replace"
    measured = levels[1:] if fixed else levels
    shares = shares_over(spec["privacy"]["shares"], measured)
    if sorted(shares) != sorted(measured):
        raise ValueError("a level has no share")
    stated: dict[str, Any] = {
        "schema": spec.get("schema") or {"cell": ["total"]},
        "unprotected_totals": levels[:1] if fixed else [],
        "protection": protection(spec, required=list(_required(spec))),
        "flow": _shape(run),
    }
    if "penalty" in spec["estimate"]:
        stated["penalty"] = str(fraction(spec["estimate"]["penalty"]))
    asked = []
    for position, level in enumerate(levels):
        table = _table(spec, position, len(levels))
        asked.append(Asked(level, table, shares.get(level, Fraction(0)), table, "trips", trips))
    return stated, asked


def flow_levels(run: RunFiles) -> list[dict[str, Any]]:
    """The levels of the tree over both hierarchies, with all pairs that are possible."""
    shape, sides, found = _shape(run), both_sides(run), []
    steps = tree_steps(run)
    for position in range(len(steps) + 1):
        done = steps[:position]
        o, d = done.count("origin"), done.count("destination")
        name = f"{shape['origin_levels'][o]}-to-{shape['destination_levels'][d]}"
        pairs = sides["origin"].size(o) * sides["destination"].size(d)
        if "cell" in done:
            name += "-by-" + "-".join(shape["attributes"])
            pairs *= n_cells(run)
        found.append({"level": name, "areas": pairs, "nodes": pairs})
    return found


def has_exact_number(spec: Spec) -> bool:
    """Whether every unit has exactly the stated number of trips."""
    stated = spec["trips"].get("number")
    return spec["privacy"]["max_contribution"] == 1 if stated is None else stated == "exactly"


def _shape(run: RunFiles) -> dict[str, Any]:
    spec, planned = run.spec, run.plan["flow"]
    sides = {
        "origin": spec["hierarchy"],
        "destination": spec.get("destinations", spec["hierarchy"]),
    }
    named = {side: level_names(keys) for side, keys in sides.items()}
    return {
        "tree": spec["tree"],
        "origin_levels": named["origin"] or planned["origin_levels"],
        "destination_levels": named["destination"] or planned["destination_levels"],
        "attributes": list(spec.get("schema") or {}),
    }


def _table(spec: Spec, position: int, n_levels: int) -> str:
    """Trips that differ in their pairs of leaves lie in different cells there, and not above."""
    if position == 0:
        return "grand_total"
    leaf_pairs = n_levels - 1 - bool(spec.get("schema"))
    distinct = spec["trips"]["distinct"] and position >= leaf_pairs
    return "distinct_pairs" if distinct else "pairs"


def _required(spec: Spec) -> Iterator[str]:
    if "unit" not in spec["data"] or spec["trips"]["above"] == "cap":
        return
    unit, number = spec["privacy"]["unit"], spec["privacy"]["max_contribution"]
    how_many = "exactly" if has_exact_number(spec) else "at most"
    yield f"{how_many} {number} trip(s) of each {unit}"
    if spec["trips"]["distinct"]:
        yield f"different pairs of areas for all trips of a {unit}"
