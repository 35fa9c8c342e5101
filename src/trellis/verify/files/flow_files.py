"""What a release of flows consists of: two hierarchies, the tree over them, and nodes by level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import pyarrow as pa

from trellis.verify.files.run_files import RunFiles

NODE = ("origin", "destination", "cell")


@dataclass(frozen=True, slots=True)
class Side:
    """One hierarchy: codes and parents by level."""

    codes: list[list[str]]
    parents: list[np.ndarray]

    def size(self, level: int) -> int:
        return len(self.codes[level])

    def children(self, level: int, areas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many children each area of a level has, and the position of the first."""
        bounds = np.searchsorted(self.parents[level + 1], np.arange(self.size(level) + 1))
        return (bounds[1:] - bounds[:-1])[areas], bounds[:-1][areas]


@lru_cache(maxsize=1)
def both_sides(run: RunFiles) -> dict[str, Side]:
    two = (run.path / "destinations.parquet").exists()
    names = {"origin": "hierarchy.parquet",
             "destination": "destinations.parquet" if two else "hierarchy.parquet"}  # fmt: skip
    return {side: _side(run, name) for side, name in names.items()}


def _side(run: RunFiles, name: str) -> Side:
    table = run.table(name)
    level = table["level"].to_numpy()
    parts = [table.filter(pa.array(level == i)) for i in range(int(level.max()) + 1)]
    return Side(
        [part["code"].to_pylist() for part in parts], [part["parent"].to_numpy() for part in parts]
    )


def tree_steps(run: RunFiles) -> list[str]:
    """Which side is split from level to level: in turn, then the one that is left."""
    flow = run.plan["flow"]
    left = {side: len(flow[f"{side}_levels"]) - 1 for side in ("origin", "destination")}
    turn, steps = flow["tree"], []
    while sum(left.values()):
        if left[turn]:
            steps.append(turn)
            left[turn] -= 1
        turn = "origin" if turn == "destination" else "destination"
    return [*steps, "cell"] if flow["attributes"] else steps


def depths_of(run: RunFiles, level: int) -> tuple[int, int]:
    done = tree_steps(run)[:level]
    return done.count("origin"), done.count("destination")


def level_names(run: RunFiles) -> list[str]:
    return [level["level"] for level in run.plan["levels"]]


def n_cells(run: RunFiles) -> int:
    return prod(len(categories) for categories in run.plan["schema"].values())


def estimated(run: RunFiles, level: int) -> dict[str, np.ndarray]:
    table = run.table(f"estimates/level={level_names(run)[level]}.parquet")
    return {key: table[key].to_numpy() for key in (*NODE, "count") if key in table.column_names}


def parents_of(run: RunFiles, level: int, nodes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parents of nodes of `level`."""
    step = tree_steps(run)[level - 1]
    if step == "cell":
        return {key: values for key, values in nodes.items() if key != "cell"}
    depth = depths_of(run, level)[0 if step == "origin" else 1]
    return {**nodes, step: both_sides(run)[step].parents[depth][nodes[step]]}


def node_keys(run: RunFiles, level: int, nodes: dict[str, np.ndarray]) -> np.ndarray:
    """One number per node."""
    destinations = both_sides(run)["destination"].size(depths_of(run, level)[1])
    keys = nodes["origin"].astype(np.int64) * destinations + nodes["destination"]
    return keys * n_cells(run) + nodes["cell"] if "cell" in nodes else keys
