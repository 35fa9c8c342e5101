"""Flows between any levels and any areas, added up from those between leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from trellis.errors import StructureError
from trellis.model.trees.flows import FlowLevel, FlowTree
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes


def flows_between(
    tree: FlowTree,
    leaves: FlowLevel,
    levels: tuple[str, str],
    areas: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None),
) -> pa.Table:
    """Columns origin, destination, count; pairs without a flow are left out.

    `levels` and `areas` are of origins and destinations; without areas, all of the level.
    """
    sides = ((tree.origins, leaves.nodes.origin), (tree.destinations, leaves.nodes.destination))
    places, kept = [], np.ones(len(leaves.nodes), dtype=bool)
    for (hierarchy, positions), name, chosen in zip(sides, levels, areas, strict=True):
        level = hierarchy.index(name)
        place = lifted(hierarchy, level, positions)
        if chosen is not None:
            kept &= np.isin(place, _positions(hierarchy, level, chosen))
        places.append(place)
    width = tree.destinations.size(levels[1])
    keys, inverse = np.unique(places[0][kept] * width + places[1][kept], return_inverse=True)
    counts = np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, inverse, leaves.counts[kept])
    origin, destination = np.divmod(keys, width)
    return pa.table(
        {
            "origin": level_codes(tree.origins, levels[0]).take(pa.array(origin)),
            "destination": level_codes(tree.destinations, levels[1]).take(pa.array(destination)),
            "count": counts,
        }
    )


def lifted(hierarchy: Hierarchy, level: int, leaves: np.ndarray) -> np.ndarray:
    """The areas of a level that hold these leaves."""
    above = np.arange(hierarchy.sizes[-1], dtype=np.int64)
    for below in range(hierarchy.leaf_level, level, -1):
        above = hierarchy.parents(below)[above]
    return above[leaves]


def _positions(hierarchy: Hierarchy, level: int, codes: Sequence[str]) -> list[int]:
    if isinstance(codes, str):
        raise StructureError(f"Give a list of areas, such as [{codes!r}].")
    known = {str(code): i for i, code in enumerate(hierarchy.codes(level))}
    for code in codes:
        if code not in known:
            name = hierarchy.level_names[level]
            raise StructureError(f"There is no area {code!r} on level {name!r}.")
    return [known[code] for code in codes]
