"""Random releases of flows: both trees, distinct pairs, exact numbers, caps, attributes."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

from redteam.worlds.privacy import draw_privacy
from redteam.worlds.trees import draw_tree
from redteam.worlds.world import RandomWorld, Row, Rows
from trellis.model.plans.kinds.flows import FLOW_METHODS

UNIT = "me"
"""Whose trips differ between neighbours; all others have names of their own."""


def draw_flows(chance: Random) -> RandomWorld:
    tree = draw_tree(chance, depth=(2, 3), most=3)
    privacy = draw_privacy(chance)
    most = privacy["max_contribution"]
    trips: dict[str, Any] = {"number": chance.choice(("at_most", "exactly"))}
    capped = trips["number"] == "at_most" and chance.random() < 0.35
    if capped:
        trips["above"] = "cap"
    trips["distinct"] = chance.random() < 0.4
    exactly = trips["number"] == "exactly"
    if exactly:
        privacy["neighbours"] = "replace"
    modes = ("car", "bus") if chance.random() < 0.3 else ()
    spec: dict[str, Any] = {
        "release": "commuting",
        "kind": "flows",
        "dataset": "commuting",
        "data": {"source": "records.csv", "origin": "home", "destination": "work",
                 "unit": "person"},
        "hierarchy": {"source": "areas.csv", "columns": list(tree.levels)},
        "tree": chance.choice(("destination", "origin")),
        "trips": trips,
        "privacy": privacy,
        "estimate": {"method": chance.choice(list(FLOW_METHODS))},
    }  # fmt: skip
    if modes:
        spec["schema"] = {"mode": list(modes)}
    leaves = tree.leaves

    def record(chance: Random, who: str = UNIT) -> Row:
        ends = chance.choice(leaves), chance.choice(leaves)
        return who, *ends, *([chance.choice(modes)] if modes else [])

    def broken(rows: Rows) -> frozenset[str]:
        if capped:
            return frozenset()
        by_person = defaultdict(list)
        for person, *trip in rows:
            by_person[person].append(tuple(trip[:2]))
        unit, found = privacy["unit"], set()
        wrong = (lambda n: n != most) if exactly else (lambda n: n > most)
        if any(wrong(len(made)) for made in by_person.values()):
            found.add(f"{'exactly' if exactly else 'at most'} {most} trip(s) of each {unit}")
        if trips["distinct"] and any(len(set(t)) < len(t) for t in by_person.values()):
            found.add(f"different pairs of areas for all trips of a {unit}")
        return frozenset(found)

    others: Rows = ()
    for i in range(chance.randint(3, 12)):
        made = tuple(record(chance, f"p{i}") for _ in range(most))
        others = (*others, *made) if not broken(made) else others
    return RandomWorld(
        kind="flows",
        spec=spec,
        files={"areas.csv": tree.csv},
        columns=("person", "home", "work", *(["mode"] if modes else [])),
        others=others,
        record=record,
        area_of=lambda row, level: tree.above(row[1], level),
        number_known=exactly,
        exactly=most if exactly else None,
        most=most + 2 if capped else None,
        broken=broken,
    )
