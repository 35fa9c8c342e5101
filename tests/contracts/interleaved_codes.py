"""Releases of every kind whose codes stand in an order that NumPy's default sort does not survive.

Prints the name of each step that is done; a step that sorts codes that way ends the process.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import flow_worlds
import histogram_release_worlds
import size_worlds
import trellis
from spine_worlds import SPEC as SPINE_SPEC
from trellis.model import Hierarchy
from trellis.verify import verify_run
from worlds import SPEC, changed

N = 150  # of either run
RISING = [f"Z{2 * i:04d}" for i in range(N)]
FALLING = [f"Z{2 * i + 1:04d}" for i in reversed(range(N))]
TOWNS = RISING + FALLING
STATES = [f"s{i:04d}" for i in range(2 * N)]  # one town in each, so towns keep their order
AREAS = pa.table({"nation": ["r"] * 2 * N, "state": STATES, "town": TOWNS})
LEVELS = {"columns": ["nation", "state", "town"]}


def tree() -> None:
    rows = [("r", state, town) for state, town in zip(STATES, TOWNS, strict=True)]
    assert Hierarchy.from_paths(rows).codes(2).tolist() == TOWNS
    assert Hierarchy.from_paths([("r", town) for town in TOWNS]).codes(1).tolist() == sorted(TOWNS)


def run(folder: Path, spec: dict[str, Any], data: pa.Table, **inputs: Any) -> None:
    release = trellis.run(trellis.Spec.parse(spec, folder), folder / "run", data=data, **inputs)
    assert not any(finding.problems for finding in verify_run(release.path))


def counts(folder: Path) -> None:
    people = pa.table({"town": TOWNS, "people": [1] * 2 * N})
    spec = changed(SPEC, data={"area": "town", "count": "people"}, hierarchy=LEVELS)
    run(folder, spec, people, hierarchy=AREAS)


def state_with_places(folder: Path, *spine: Any) -> None:
    """A place in every county, in half of its blocks; a branch cuts every county in two."""
    blocks = pa.table(
        {
            "nation": ["r"] * 4 * N,
            "state": ["x"] * 4 * N,
            "county": [county for county in STATES for _ in "ab"],
            "geoid": [f"b{i:04d}" for i in range(4 * N)],
            "pop": [2] * 4 * N,
            "place": [place if side == "a" else None for place in TOWNS for side in "ab"],
        }
    )
    spec = changed(
        SPINE_SPEC,
        hierarchy={"columns": ["nation", "state", "county", "geoid"], "public": True},
        areas={"place": {"area": "geoid", "entity": "place", "public": True}},
        spine=[*spine, "bypass"],
    )
    public = blocks.drop_columns(["pop"])
    run(folder, spec, blocks, hierarchy=public, areas={"place": public})


def areas(folder: Path) -> None:
    state_with_places(folder)


def branch(folder: Path) -> None:
    state_with_places(folder, {"branch": {"level": "state", "inside": ["place"]}})


def histograms(folder: Path) -> None:
    people = pa.table({"town": TOWNS, "age": ["1"] * 2 * N, "sex": ["f", "m"] * N})
    spec = changed(histogram_release_worlds.SPEC, data={"area": "town"}, hierarchy=LEVELS)
    run(folder, spec, people, hierarchy=AREAS)


def group_sizes(folder: Path) -> None:
    homes = [f"h{town}" for town in TOWNS]
    register = pa.table({"home": homes, "town": TOWNS})
    spec = changed(size_worlds.SPEC, hierarchy=LEVELS)
    run(folder, spec, pa.table({"home": homes}), hierarchy=AREAS, register=register)


def flows(folder: Path) -> None:
    pairs = pa.table({"home": TOWNS, "work": TOWNS[::-1], "workers": [1] * 2 * N})
    run(folder, changed(flow_worlds.SPEC, hierarchy=LEVELS), pairs, hierarchy=AREAS)


if __name__ == "__main__":
    tree()
    print(json.dumps("tree"), flush=True)
    steps: tuple[Callable[[Path], None], ...] = (
        counts, areas, branch, histograms, group_sizes, flows,
    )  # fmt: skip
    for step in steps:
        with tempfile.TemporaryDirectory() as folder:
            step(Path(folder))
        print(json.dumps(step.__name__), flush=True)
