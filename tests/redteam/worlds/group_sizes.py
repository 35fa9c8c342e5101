"""Random releases of group sizes: every method, with quantities, caps and registers."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from redteam.worlds.privacy import draw_privacy
from redteam.worlds.trees import draw_tree
from redteam.worlds.world import RandomWorld, Row, Rows
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS


def draw_group_sizes(chance: Random) -> RandomWorld:
    tree = draw_tree(chance, depth=(2, 3), most=4)
    homes = {f"h{i}": chance.choice(tree.leaves) for i in range(chance.randint(3, 6))}
    cap, top_code = chance.randint(2, 5), chance.random() < 0.6
    most = chance.choice((1, 1, 2, 3))
    data: dict[str, Any] = {"source": "records.csv", "group": "home"}
    if most > 1:
        data |= {"quantity": "trips", "max_quantity": most}
    spec = {
        "release": "homes",
        "kind": "group_sizes",
        "dataset": "homes",
        "data": data,
        "group_register": {"source": "register.csv", "group": "home", "area": "leaf"},
        "sizes": {"cap": cap, "top_code": top_code},
        "hierarchy": {"source": "areas.csv", "columns": list(tree.levels)},
        "privacy": draw_privacy(chance) | {"shares": "uniform"},
        "unprotected": {"groups": True},
        "estimate": {"method": chance.choice(list(SIZE_METHODS))},
    }

    def record(chance: Random) -> Row:
        quantity = most if chance.random() < 0.5 else chance.randint(0, most)
        return (chance.choice(list(homes)), quantity)[: 1 + (most > 1)]

    def sizes(rows: Rows) -> Counter[str]:
        found: Counter[str] = Counter()
        for home, *quantity in rows:
            found[home] += quantity[0] if quantity else 1
        return found

    def broken(rows: Rows) -> frozenset[str]:
        above = not top_code and any(size > cap for size in sizes(rows).values())
        return frozenset([f"a size of at most {cap} of each group"] if above else [])

    others: Rows = ()
    for _ in range(chance.randint(2, 10)):
        others = more if not broken(more := (*others, record(chance))) else others
    register = "\n".join(["home,leaf", *(f"{home},{leaf}" for home, leaf in homes.items())])
    return RandomWorld(
        kind="group_sizes",
        spec=spec,
        files={"areas.csv": tree.csv, "register.csv": register + "\n"},
        columns=("home", "trips")[: 1 + (most > 1)],
        others=others,
        record=record,
        area_of=lambda row, level: tree.above(homes[row[0]], level),
        broken=broken,
    )
