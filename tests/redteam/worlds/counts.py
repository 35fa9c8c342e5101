"""Random releases of counts, on the tree itself and on spines."""

from __future__ import annotations

from random import Random
from typing import Any

from redteam.worlds.privacy import draw_privacy, draw_shares
from redteam.worlds.trees import RandomTree, draw_exact_level, draw_places, draw_tree
from redteam.worlds.world import RandomWorld

FORMS: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[tuple[int, ...], ...]]] = {
    "rows": ({}, (), ((),)),
    "cells": ({"cells": {"young": "x", "old": "y", "none": "z"}}, ("x", "y", "z"),
              ((1, 0, 0), (0, 1, 0), (0, 0, 1))),
    "differences": ({"cells": {"adults": "adults", "minors": "people - adults"}},
                    ("people", "adults"), ((1, 0), (1, 1))),
}  # fmt: skip
"""How the records are laid out: keys of `data`, columns, and what one record may have in them."""

METHODS = ("gls_topdown", "topdown", "gls", "bottomup")


def draw_counts(chance: Random) -> RandomWorld:
    tree = draw_tree(chance)
    spec = _spec(chance, tree)
    if chance.random() < 0.3:
        spec["areas"] = {"place": {"source": "places.csv", "area": "leaf", "entity": "place"}}
    exact = spec["privacy"]["neighbours"] == "replace" and chance.random() < 0.6
    if exact:
        spec["unprotected"] = {"totals": [draw_exact_level(chance, tree)]}
    elif chance.random() < 0.4:
        spec["privacy"]["shares"] = draw_shares(chance, [*tree.levels[1:]])
    elif chance.random() < 0.2:
        spec["privacy"]["shares"] = "optimal"
    return _world(chance, tree, spec, "rows" if exact else None)


def draw_counts_on_spine(chance: Random) -> RandomWorld:
    """With every step of a spine, in the orders that are allowed."""
    tree = draw_tree(chance, depth=(3, 4), most=9)
    spec = _spec(chance, tree)
    spec["areas"] = {"place": {"source": "places.csv", "area": "leaf", "entity": "place"}}
    cutoff = chance.choice((0, 1, 2, 12))
    inner = tree.levels[1:-1]
    steps: list[Any] = [
        {"regroup_leaves": {"areas": ["place"], "fanout_cutoff": cutoff}},
        {"group_level": {"level": chance.choice(inner), "areas": ["place"],
                         "fanout_cutoff": cutoff}},
        {"branch": {"level": chance.choice(inner), "inside": ["place"]}},
    ]  # fmt: skip
    spec["spine"] = [*([chance.choice(steps)] if chance.random() < 0.8 else []), "bypass"]
    if len(spec["spine"]) > 1 and chance.random() < 0.3:
        spec["spine"].pop()
    spec["estimate"] = {"method": "gls_topdown"}
    return _world(chance, tree, spec)


def _spec(chance: Random, tree: RandomTree) -> dict[str, Any]:
    return {
        "release": "towns",
        "kind": "counts",
        "dataset": "towns",
        "data": {"source": "records.csv", "area": "leaf"},
        "hierarchy": {"source": "areas.csv", "columns": list(tree.levels)},
        "privacy": draw_privacy(chance),
        "estimate": {"method": chance.choice(METHODS)},
    }


def _world(
    chance: Random, tree: RandomTree, spec: dict[str, Any], form: str | None = None
) -> RandomWorld:
    keys, columns, contents = FORMS[form or chance.choice(list(FORMS))]
    spec["data"].update(keys)
    leaves = tree.leaves

    def record(chance: Random) -> tuple[Any, ...]:
        return chance.choice(leaves), *chance.choice(contents)

    return RandomWorld(
        kind="counts",
        spec=spec,
        files={"areas.csv": tree.csv, "places.csv": draw_places(chance, tree)},
        columns=("leaf", *columns),
        others=tuple(record(chance) for _ in range(chance.randint(4, 40))),
        record=record,
        area_of=lambda row, level: tree.above(row[0], level),
    )
