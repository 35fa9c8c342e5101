"""Small worlds that several tests share: plans, measurements of them, and specs on disk."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from seeded_bits import SeededBits
from trellis.confidential.counts import TrueCounts
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Measurements, Plan, Schema
from trellis.model.plans.answers import answers
from trellis.model.plans.shares import Shares
from trellis.planning.kinds.counts import CountsRequest, plan_counts
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.hierarchies import hierarchy_digest

# -- plans and measurements -----------------------------------------------------------------------

TREE = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "a", "a3"), ("r", "b", "b1"), ("r", "c")],
    ["nation", "state", "town"],
)
"""One family of three, one of one, and an area that ends early."""


def cells(n: int) -> Schema:
    return Schema({"cell": [f"c{i}" for i in range(n)]})


REQUEST: dict[str, Any] = {
    "release": "tiny",
    "dataset": "tiny",
    "unit": "person",
    "neighbours": Neighbours.REPLACE,
    "max_contribution": 1,
    "budget": Budget(rho=Fraction(1)),
    "shares": Shares(),
    "unprotected_totals": (),
    "method": "gls_topdown",
    "confidence": Fraction(9, 10),
}
"""A request for rho = 1 in uniform shares."""


def plan_for(hierarchy: Hierarchy = TREE, n_cells: int = 1, **changes: Any) -> Plan:
    """The plan of `REQUEST`, except for `changes`."""
    digest = hierarchy_digest(hierarchy)
    return plan_counts(CountsRequest(**REQUEST | changes), hierarchy, cells(n_cells), digest)


def noisy(
    plan: Plan, hierarchy: Hierarchy, leaves: NDArray[np.int64], seed: int = 0
) -> Measurements:
    """Measured by the real step, with repeatable bits."""
    claim = Claim("run", "token", plan.privacy)
    return measure_counts(
        plan, hierarchy, TrueCounts(leaves), ChargedNoise(plan, claim, SeededBits(seed))
    )


def noiseless(plan: Plan, hierarchy: Hierarchy, leaves: NDArray[np.int64]) -> Measurements:
    """The truth in the place of measurements."""
    exact = answers(plan, hierarchy, leaves)
    return Measurements(plan, hierarchy, tuple(exact))


# -- specs on disk --------------------------------------------------------------------------------

SPEC: dict[str, Any] = {
    "release": "towns",
    "kind": "counts",
    "dataset": "towns",
    "data": {"source": "people.csv", "area": "town", "count": "people"},
    "hierarchy": {"source": "areas.csv", "columns": ["nation", "state", "town"]},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 1},
    },
}
AREAS = "nation,state,town\nr,a,a1\nr,a,a2\nr,b,b1\n"
PEOPLE = "town,people\na1,10\na2,0\nb1,25\na1,3\n"


class Remove:
    """As a change: take the key out. Names of tests show it, so it looks the same everywhere."""

    def __repr__(self) -> str:
        return "REMOVE"

    def __deepcopy__(self, _memo: Any) -> Remove:
        return self


REMOVE = Remove()


def changed(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A copy with `section__key=value` put in, or taken out."""
    spec = deepcopy(spec)
    for path, value in changes.items():
        *sections, key = path.split("__")
        place = spec
        for section in sections:
            place = place.setdefault(section, {})
        if value is REMOVE:
            del place[key]
        else:
            place[key] = deepcopy(value)
    return spec


def write_world(folder: Path, areas: str = AREAS, people: str = PEOPLE, **changes: Any) -> Path:
    """A spec with its two CSV files; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "areas.csv").write_text(areas, encoding="utf-8")
    (folder / "people.csv").write_text(people, encoding="utf-8")
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(changed(SPEC, **changes), sort_keys=False), encoding="utf-8")
    return spec
