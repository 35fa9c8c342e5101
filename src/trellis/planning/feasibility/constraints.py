"""Whether anything can satisfy the stated constraints, in the hierarchy as a whole.

Every level gets what follows from below and between queries (`model.carried_bounds`). Where bounds
on single cells leave it open, whole counts that keep all constraints are looked for
(`numerics.feasibility.feasible_below`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trellis.errors import SpecError
from trellis.model.tables.carried_bounds import Range, StatedRange, carried_bounds
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.queries import TOTAL, Query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

BYTES_PER_KIND = 1000
"""Memory of one kind of cell of one area in the program that looks for whole counts."""

if TYPE_CHECKING:
    from trellis.numerics.feasibility.feasible_below import FeasibleBelow


def implied_bounds(
    constraints: Constraints, hierarchy: Hierarchy, schema: Schema
) -> list[dict[str, Range]]:
    """For every level, root first, the bounds of each query constrained there or below."""
    queries, stated = _stated_ranges(constraints, hierarchy, schema)
    return carried_bounds(hierarchy, queries, stated, constraints.impossible)


def _stated_ranges(
    constraints: Constraints, hierarchy: Hierarchy, schema: Schema
) -> tuple[dict[str, Query], list[list[StatedRange]]]:
    """Bounded queries by name, and what is stated of them on each level."""
    queries = {c.query: parse_query(schema, c.query) for c in constraints.linear}
    stated = [
        [StatedRange.of(c, queries[c.query]) for c in constraints.on(name)]
        for name in hierarchy.level_names
    ]
    return {query.name: query for query in queries.values()}, stated


def check_feasible(constraints: Constraints, hierarchy: Hierarchy, schema: Schema) -> None:
    """Refuse constraints that nothing can satisfy, naming an area and the fewest that clash."""
    if not constraints.linear:
        return
    # Commands that only check do without these if there are no constraints.
    from trellis.numerics.feasibility.feasible_below import FeasibleBelow
    from trellis.planning.feasibility.clashing_constraints import clash_in_words

    queries, stated = _stated_ranges(constraints, hierarchy, schema)
    carried = carried_bounds(hierarchy, queries, stated, constraints.impossible)
    room = FeasibleBelow.of(hierarchy, schema, queries, carried, stated, constraints.impossible)
    found = _crossed(room) or _impossible(room)
    if found is not None:
        raise SpecError(clash_in_words(constraints, schema, room, *found))


def check_program_size(
    constraints: Constraints,
    hierarchy: Hierarchy,
    schema: Schema,
    exact: Sequence[str],
    memory: int | None,
) -> None:
    """Refuse bounds on unions of cells that do not fit into memory, exact totals included.

    These are confidential before they are measured, and one more than the least possible stands
    for them: an area is written out unless all its cells but one are fixed, whatever its total.
    """
    if memory is None or not constraints.linear:
        return
    from trellis.numerics.feasibility.feasible_below import FeasibleBelow

    queries, stated = _stated_ranges(constraints, hierarchy, schema)
    carried = carried_bounds(hierarchy, queries, stated, constraints.impossible)
    if exact:
        level = max(map(hierarchy.index, exact))
        total = parse_query(schema, TOTAL)
        least = [r.lower.sum(axis=1, keepdims=True) for r in carried[level].values()]
        one_more = np.max([np.zeros((hierarchy.size(level), 1)), *least], axis=0) + 1
        stated[level].append(StatedRange(TOTAL, Range(one_more, one_more)))
        queries[TOTAL] = total
        carried = carried_bounds(hierarchy, queries, stated, constraints.impossible)
    room = FeasibleBelow.of(hierarchy, schema, queries, carried, stated, constraints.impossible)
    areas = sum(int(flags.sum()) for flags in room.written_out)
    needed = areas * room.kinds.n_cells * BYTES_PER_KIND
    if needed > memory:
        raise SpecError(
            f"constraints: bounds on sums of cells tie {areas:,} areas x {room.kinds.n_cells:,} "
            f"cells of {room.kinds.name!r} together, which takes about {needed / 1e9:.0f} GB; this "
            f"machine has {memory / 1e9:.0f} GB. Bound fewer areas, or coarser queries."
        )


def _crossed(room: FeasibleBelow) -> tuple[int, int] | None:
    """The lowest level, and an area of it, with a range that holds nothing."""
    for level in reversed(range(room.hierarchy.n_levels)):
        for found in room.ranges[level].values():
            crossed = (found.lower > found.upper).any(axis=1)
            if crossed.any():
                return level, int(np.argmax(crossed))
    return None


def _impossible(room: FeasibleBelow) -> tuple[int, int] | None:
    """The level and area of the smallest subtree that can hold nothing."""
    if not room.written_out[0].any() or room.is_possible(0, 0):
        return None
    level, area = 0, 0
    while level < room.hierarchy.leaf_level:
        first, last = room.hierarchy.child_start[level][area : area + 2].tolist()
        children = (c for c in range(first, last) if room.written_out[level + 1][c])
        worse = next((c for c in children if not room.is_possible(level + 1, c)), None)
        if worse is None:
            break
        level, area = level + 1, worse
    return level, area
