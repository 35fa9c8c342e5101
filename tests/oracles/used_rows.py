"""Which rows of a query a descent reads, one question at a time."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.model import Hierarchy


def used_rows(
    hierarchy: Hierarchy, level: int, parents: Sequence[Sequence[int]], cell_of: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of an area and a cell of the query, in order, below the counts of the parents."""
    start = hierarchy.child_start[level - 1]
    rows = []
    for parent, held in enumerate(parents):
        children = range(start[parent], start[parent + 1])
        used = sorted({cell_of[c] for c, n in enumerate(held) if n > 0})
        if len(children) > 1:  # an only child copies its parent
            rows += [(child, cell) for child in children for cell in used]
    return rows
