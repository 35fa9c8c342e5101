"""A small state with places, on disk as frames and as a spec."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from trellis.samples.demo import block_codes, block_populations

SPEC: dict[str, Any] = {
    "release": "small",
    "kind": "counts",
    "dataset": "small",
    "data": {"area": "geoid", "cells": {"total": "pop"}},
    "hierarchy": {
        "public": True,  # areas and places are columns of the records
        "code": {"column": "geoid", "width": 15},
        "prefixes": {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15},
    },
    "areas": {
        "place": {"area": "geoid", "entity": "place", "public": True},
        "zone": {"area": "geoid", "entity": "zone", "public": True},
    },
    "spine": [{"regroup_leaves": {"areas": ["place"], "fanout_cutoff": 2}}, "bypass"],
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 1},
    },
    "output": {"csv": True},
}


def blocks(n_blocks: int = 160, seed: int = 7) -> pa.Table:
    """Blocks with people, places (half of the blocks in one) and zones (all)."""
    rng = np.random.default_rng(seed)
    codes = block_codes(rng, n_blocks)
    run = np.cumsum(rng.random(n_blocks) < 0.06)
    place = [f"P{k:02d}" if k % 2 else None for k in run.tolist()]
    zone = [f"Z{k:02d}" for k in np.cumsum(rng.random(n_blocks) < 0.05).tolist()]
    people = block_populations(rng, n_blocks)
    return pa.table(
        {"geoid": codes, "pop": people, "some": people // 3, "place": place, "zone": zone}
    )


def spec(folder: Path, **changes: Any) -> trellis.Spec:
    """The spec, with sections merged key by key; None takes a section out."""
    content = deepcopy(SPEC)
    for key, value in changes.items():
        if value is None:
            content.pop(key, None)
        elif isinstance(value, dict):
            content[key] = content.get(key, {}) | value
        else:
            content[key] = value
    return trellis.Spec.parse(content, folder)


def release(folder: Path, table: pa.Table | None = None, **changes: Any) -> trellis.Release:
    table = blocks() if table is None else table
    return trellis.run(
        spec(folder, **changes),
        folder / "run",
        data=table,
        hierarchy=table.select(["geoid"]),
        areas={"place": table.select(["geoid", "place"]), "zone": table.select(["geoid", "zone"])},
    )
