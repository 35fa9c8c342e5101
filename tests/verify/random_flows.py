"""Random releases of flows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa

import trellis

METHODS = (
    "chebyshev", "chebyshev_descending", "l2", "sparse", "gls_chebyshev", "gls_l2", "gls_sparse",
)  # fmt: skip
LEVELS = ["nation", "state", "town"]


def random_release(folder: Path, rng: random.Random, method: str) -> Path:
    """A finished run of a random spec."""
    rows = [
        ("r", f"s{state}", f"s{state}t{town}")
        for state in range(rng.randint(1, 4))
        for town in range(rng.randint(1, 5))
    ]
    areas = pa.table(dict(zip(LEVELS, map(list, zip(*rows, strict=True)), strict=True)))
    codes = [row[-1] for row in rows]
    pairs = range(rng.randint(1, 60))
    trips = {
        "home": [rng.choice(codes) for _ in pairs],
        "work": [rng.choice(codes) for _ in pairs],
        "workers": [rng.randint(0, rng.choice([3, 50, 500])) for _ in pairs],
    }
    privacy = {
        "unit": "worker",
        "neighbours": rng.choice(["replace", "add_remove"]),
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": rng.choice(["1/20", "1", "10"])},
    }
    estimate = {"method": method}
    if method.endswith("sparse"):
        estimate["penalty"] = rng.choice(["1/2", "1", "2"])
    spec = {
        "release": "commuting",
        "kind": "flows",
        "dataset": "commuting",
        "data": {"origin": "home", "destination": "work", "count": "workers"},
        "hierarchy": {"columns": LEVELS},
        "tree": rng.choice(["origin", "destination"]),
        "estimate": estimate,
        "privacy": privacy,
        "output": {"csv": False},
    }
    if rng.random() < 0.3:
        modes = ["car", "bus", "walk"]
        spec["schema"] = {"mode": modes}
        trips["mode"] = [rng.choice(modes) for _ in pairs]
    parsed = trellis.Spec.parse(spec, folder)
    trellis.run(parsed, folder / "run", data=pa.table(trips), hierarchy=areas)
    return folder / "run"
