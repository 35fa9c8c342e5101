"""Small worlds of groups that several tests share: records, a register, and specs of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

import trellis
from trellis.api.releases import Release
from trellis.model import Hierarchy, Plan
from trellis.model.plans.shares import Shares
from trellis.planning.kinds.group_sizes import GroupSizesRequest, plan_group_sizes
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from worlds import changed

TREE = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")], ["nation", "state", "town"]
)
"""A family of two, one of one, and an area that ends early."""

AREAS = pa.table({"nation": ["r"] * 4, "state": ["a", "a", "b", "c"],
                  "town": ["a1", "a2", "b1", None]})  # fmt: skip
UNITS = {"h1": "a1", "h2": "a1", "h3": "a1", "h4": "a2", "h5": "b1", "h6": "c", "h7": "c"}
MEMBERS = {"h1": 1, "h2": 4, "h3": 0, "h4": 2, "h5": 2, "h6": 7, "h7": 1}
REGISTER = pa.table({"home": list(UNITS), "town": list(UNITS.values())})
NUMBERS = pa.table({"town": ["a1", "a2", "b1", "c"], "homes": [3, 1, 1, 2]})
RECORDS = pa.table({"home": [home for home, n in MEMBERS.items() for _ in range(n)]})
TABLE = pa.table({"town": [*UNITS.values()], "size": [*MEMBERS.values()], "homes": [1] * 7})
TRUE_LEAVES = [[1, 1, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 1]]
"""Groups by size 0 .. 4; the household of seven counts as four."""

SPEC: dict[str, Any] = {
    "release": "homes",
    "kind": "group_sizes",
    "dataset": "homes",
    "data": {"group": "home"},
    "group_register": {"group": "home", "area": "town"},
    "sizes": {"cap": 4, "top_code": True},
    "hierarchy": {"columns": ["nation", "state", "town"]},
    "privacy": {
        "unit": "person",
        "neighbours": "add_remove",
        "max_contribution": 1,
        "mechanism": "discrete_laplace",
        "budget": {"epsilon": 1},
        "shares": "uniform",
    },
    "unprotected": {"groups": True},
}
TABLE_FORM: dict[str, Any] = {
    "data": {"area": "town", "size": "size", "groups": "homes"},
    "group_register": {"groups": "homes", "area": "town"},
}


def spec_in(folder: Path, **changes: Any) -> trellis.Spec:
    return trellis.Spec.parse(changed(SPEC, **changes), folder)


def release_into(folder: Path, **changes: Any) -> Release:
    """A run on the records above."""
    spec = spec_in(folder, **changes)
    return trellis.run(spec, folder / "run", data=RECORDS, hierarchy=AREAS, register=REGISTER)


def sizes_plan(hierarchy: Hierarchy = TREE, cap: int = 4, **changes: Any) -> Plan:
    """The plan of a request for epsilon = 1 in uniform shares, except for `changes`."""
    request = {
        "release": "homes",
        "dataset": "homes",
        "unit": "person",
        "neighbours": Neighbours.ADD_REMOVE,
        "max_contribution": 1,
        "max_quantity": 1,
        "budget": Budget(epsilon=Fraction(1)),
        "shares": Shares(),
        "cap": cap,
        "method": "cumulative_joint",
        "weights": None,
        "confidence": Fraction(9, 10),
    }
    return plan_group_sizes(GroupSizesRequest(**request | changes), hierarchy, "digest")


def write_size_world(folder: Path, people: pa.Table = RECORDS, **changes: Any) -> Path:
    """A spec with its files; returns the path of the spec."""
    import pyarrow.csv as pa_csv

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("areas", AREAS), ("people", people), ("register", REGISTER)):
        pa_csv.write_csv(table, folder / f"{name}.csv")
    sources = {
        "data__source": "people.csv",
        "group_register__source": "register.csv",
        "hierarchy__source": "areas.csv",
    }
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(changed(SPEC, **sources | changes), sort_keys=False))
    return spec
