"""Random releases of histograms: attributes, recodes, strategies, rules that bind or do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from redteam.worlds.privacy import draw_privacy, draw_shares
from redteam.worlds.trees import RandomTree, draw_exact_level, draw_tree
from redteam.worlds.world import RandomWorld, Row, Rows

NAMES = ("age", "grand_total", "pairs", "histogram", "cumulative", "distinct_pairs")
"""Most are names of tables that cost something else in other kinds of release."""

Attributes = dict[str, tuple[str, ...]]


def draw_histograms(chance: Random) -> RandomWorld:
    tree = draw_tree(chance, depth=(2, 3), most=4)
    attributes = _attributes(chance)
    privacy = draw_privacy(chance)
    spec: dict[str, Any] = {
        "release": "towns",
        "kind": "histograms",
        "dataset": "towns",
        "data": {"source": "records.csv", "area": "leaf"},
        "hierarchy": {"source": "areas.csv", "columns": list(tree.levels)},
        "schema": {name: list(labels) for name, labels in attributes.items()},
        "privacy": privacy,
        "output": {"tables": {"default": ["total"]}},
    }
    queries = ["total", *(attributes if len(attributes) > 1 else [])]
    first = next(iter(attributes))
    if len(attributes[first]) > 2 and chance.random() < 0.6:
        low, *high = attributes[first]
        name = chance.choice([name for name in NAMES if name not in attributes])
        spec["recodes"] = {name: {"of": first, "groups": {"low": [low], "high": high}}}
        queries.append(name)
    spec["strategy"] = _strategy(chance, tree, queries)
    if privacy["neighbours"] == "replace" and chance.random() < 0.5:
        spec["unprotected"] = {"totals": [draw_exact_level(chance, tree)]}
    zeros = _zeros(chance, attributes, spec)
    return _world(chance, tree, attributes, spec, zeros)


def _attributes(chance: Random) -> Attributes:
    names = chance.sample(NAMES, chance.choice((1, 2, 2)))
    return {name: tuple("abc"[: chance.choice((2, 3))]) for name in names}


def _strategy(chance: Random, tree: RandomTree, queries: list[str]) -> Any:
    if chance.random() < 0.1:
        return "optimal"
    several = chance.sample(queries, chance.randint(1, min(3, len(queries))))
    strategy = {"default": draw_shares(chance, [*several, "detailed"])}
    if chance.random() < 0.4:
        strategy[tree.levels[-1]] = {"detailed": "1"}
    return strategy


def _zeros(chance: Random, attributes: Attributes, spec: dict[str, Any]) -> Mapping[int, str]:
    """A combination that cannot be; returns it by column, if the records are bound to it."""
    method = chance.choice(("gls_topdown", "topdown", "topdown", "gls"))
    spec["estimate"] = {"method": method}
    if method == "topdown" and chance.random() < 0.4:
        spec["output"]["measurements"] = "used"
    if method == "gls" or chance.random() < 0.5:
        return {}
    chosen = {name: chance.choice(labels) for name, labels in attributes.items()}
    rule = " and ".join(f"{name} = {label}" for name, label in chosen.items())
    binds = chance.choice(("records", "output", None))
    rules: Any = [rule] if binds is None else {"binds": binds, "rules": [rule]}
    spec["structural_zeros"] = rules
    if binds == "output":
        return {}
    return {1 + i: label for i, label in enumerate(chosen.values())}


def _world(
    chance: Random,
    tree: RandomTree,
    attributes: Attributes,
    spec: dict[str, Any],
    zeros: Mapping[int, str],
) -> RandomWorld:
    leaves = tree.leaves

    def record(chance: Random) -> Row:
        return chance.choice(leaves), *(chance.choice(labels) for labels in attributes.values())

    def is_impossible(row: Row) -> bool:
        return bool(zeros) and all(row[i] == label for i, label in zeros.items())

    possible = (row for row in iter(lambda: record(chance), None) if not is_impossible(row))
    others = tuple(next(possible) for _ in range(chance.randint(4, 30)))
    files = {"areas.csv": tree.csv}
    beds = _beds(chance, spec, others, files)

    def broken(rows: Rows) -> frozenset[str]:
        found = {"the structural zeros"} if any(map(is_impossible, rows)) else set()
        here = Counter(row[0] for row in rows)
        if any(here[leaf] > most for leaf, most in beds.items()):
            found.add("the bounds of constraint 'beds'")
        return frozenset(found)

    numbered = enumerate(attributes.items(), start=1)
    return RandomWorld(
        kind="histograms",
        spec=spec,
        files=files,
        columns=("leaf", *attributes),
        others=others,
        record=record,
        area_of=lambda row, level: tree.above(row[0], level),
        attributes={name: (i, labels) for i, (name, labels) in numbered},
        broken=broken,
    )


def _beds(
    chance: Random, spec: dict[str, Any], others: Rows, files: dict[str, str]
) -> dict[str, int]:
    """Most records of a leaf, from a public file; returns them if the records are bound."""
    if spec["estimate"]["method"] == "gls" or chance.random() < 0.6:
        return {}
    here = Counter(row[0] for row in others)
    most = {leaf: n + chance.randint(0, 2) for leaf, n in here.items()}
    files["beds.csv"] = "\n".join(["leaf,beds", *(f"{k},{v}" for k, v in most.items())]) + "\n"
    binds = chance.choice(("records", "output"))
    spec["constraints"] = [{"name": "beds", "source": "beds.csv", "area": "leaf", "query": "total",
                            "at_most": "beds", "binds": binds}]  # fmt: skip
    return most if binds == "records" else {}
