"""Small worlds of flows that several tests share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import yaml

import trellis
from trellis.api.releases import Release
from trellis.confidential.flows import TrueFlows
from trellis.model import Hierarchy, Plan, Schema
from trellis.model.plans.kinds.flows import FLOW_METHODS
from trellis.model.plans.shares import Shares
from trellis.model.trees.flows import FlowTree
from trellis.planning.kinds.flows import FlowsRequest, plan_flows
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from worlds import changed

TOWNS = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")], ["nation", "state", "town"]
)
"""A family of two, one of one, and an area that ends early."""

ZONES = Hierarchy.from_paths([("all", "x"), ("all", "y"), ("all", "z")], ["city", "zone"])
ONE_CELL = Schema({"cell": ["total"]})
MODES = Schema({"mode": ["car", "bus"]})

AREAS = pa.table(
    {"nation": ["r"] * 4, "state": ["a", "a", "b", "c"], "town": ["a1", "a2", "b1", None]}
)
ZONE_AREAS = pa.table({"city": ["all"] * 3, "zone": ["x", "y", "z"]})
PAIRS = pa.table(
    {
        "home": ["a1", "a1", "a2", "b1", "c", "a1"],
        "work": ["a1", "b1", "a1", "c", "c", "a1"],
        "workers": [40, 25, 30, 50, 20, 3],
    }
)
TRIPS = pa.table(
    {
        "person": ["p", "p", "q", "r", "r"],
        "home": ["a1", "a1", "a2", "b1", "c"],
        "work": ["a1", "b1", "a1", "c", "c"],
        "mode": ["car", "bus", "car", "car", "bus"],
    }
)

SPEC: dict[str, Any] = {
    "release": "commuting",
    "kind": "flows",
    "dataset": "commuting",
    "data": {"origin": "home", "destination": "work", "count": "workers"},
    "hierarchy": {"columns": ["nation", "state", "town"]},
    "privacy": {
        "unit": "worker",
        "neighbours": "replace",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 1},
    },
}


def spec_in(folder: Path, **changes: Any) -> trellis.Spec:
    return trellis.Spec.parse(changed(SPEC, **changes), folder)


def release_into(folder: Path, records: pa.Table = PAIRS, **changes: Any) -> Release:
    spec = spec_in(folder, **changes)
    zones = ZONE_AREAS if spec.destinations is not None else None
    return trellis.run(spec, folder / "run", data=records, hierarchy=AREAS, destinations=zones)


def write_flow_world(folder: Path, pairs: pa.Table = PAIRS, **changes: Any) -> Path:
    """A spec with its files; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    pa_csv.write_csv(AREAS, folder / "areas.csv")
    pa_csv.write_csv(pairs, folder / "pairs.csv")
    sources = {"data__source": "pairs.csv", "hierarchy__source": "areas.csv"}
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(changed(SPEC, **sources | changes), sort_keys=False))
    return spec


def tree_of(
    origins: Hierarchy = TOWNS,
    destinations: Hierarchy | None = None,
    tree: str = "destination",
    schema: Schema = ONE_CELL,
) -> FlowTree:
    return FlowTree.of(tree, origins, destinations or origins, schema)


def flows_plan(tree: FlowTree, schema: Schema = ONE_CELL, **changes: Any) -> Plan:
    """The plan of a request for rho = 1 in uniform shares, except for `changes`."""
    request = {
        "release": "commuting",
        "dataset": "commuting",
        "unit": "worker",
        "neighbours": Neighbours.REPLACE,
        "max_contribution": 1,
        "exactly": True,
        "distinct": False,
        "budget": Budget(rho=Fraction(1)),
        "shares": Shares(),
        "method": "chebyshev",
        "penalty": None,
        "confidence": Fraction(9, 10),
    }
    if FLOW_METHODS[changes.get("method", "chebyshev")].has_penalty:
        request["penalty"] = Fraction(1)
    return plan_flows(FlowsRequest(**request | changes), tree, schema, "digest")


def dense(flows: TrueFlows, tree: FlowTree, level: int) -> np.ndarray:
    """The true table of a level, written out: the slow twin of the tree of true flows."""
    origin, destination = tree.shape.depths(level)
    cells = tree.n_cells if level > tree.shape.leaf_pairs else 1
    table = np.zeros(
        (tree.origins.sizes[origin], tree.destinations.sizes[destination], cells), dtype=np.int64
    )
    cell = np.zeros_like(flows.origin) if cells == 1 else flows.cell
    places = (
        ancestors(tree.origins, origin, flows.origin),
        ancestors(tree.destinations, destination, flows.destination),
        cell,
    )
    np.add.at(table, places, flows.count)
    return table


def ancestors(hierarchy: Hierarchy, level: int, leaves: np.ndarray) -> np.ndarray:
    areas = leaves.astype(np.int64)
    for below in range(hierarchy.leaf_level, level, -1):
        areas = hierarchy.parents(below)[areas]
    return areas
