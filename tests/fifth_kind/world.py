"""A small world of means: towns, and what their people earn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from worlds import AREAS, changed

SPEC: dict[str, Any] = {
    "release": "towns",
    "kind": "means",
    "dataset": "towns",
    "data": {"source": "people.csv", "area": "town", "value": "hours", "at_most": 5},
    "hierarchy": {"source": "areas.csv", "columns": ["nation", "state", "town"]},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 1000},
    },
}
PEOPLE = "town,hours\na1,5\na1,3\na2,0\na2,4\nb1,1\nb1,2\nb1,3\n"
TRUE_LEAVES = [[8, 2], [4, 6], [6, 9]]
"""Sums of the towns, and what is missing to 5 for each record."""


def write_means_world(folder: Path, people: str = PEOPLE, **changes: Any) -> Path:
    """A spec with its two CSV files; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "areas.csv").write_text(AREAS, encoding="utf-8")
    (folder / "people.csv").write_text(people, encoding="utf-8")
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(changed(SPEC, **changes), sort_keys=False), encoding="utf-8")
    return spec
