"""Puts a level of groups above a level, so that areas of interest come closer to the tree."""

from __future__ import annotations

import numpy as np

from trellis.errors import StructureError
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.reduction import Reduction, require_level, tree_of
from trellis.planning.spine.regroup import (
    Several,
    categories_of,
    check_cutoff,
    group_limits,
    number_codes,
    segments,
)

SUFFIX = "_group"


def group_level(
    hierarchy: Hierarchy,
    level: int | str,
    labels: Several,
    fanout_cutoff: int = 12,
    name: str | None = None,
) -> Reduction:
    """A new level of groups of the areas of `level`, above it; it is called `level`_group.

    Within each parent, groups begin as single areas and are merged, in order and for as long as
    that is possible, if the group has at most int(sqrt(n)) + `fanout_cutoff` of the parent's n
    areas, and the off-spine distances sorted from the largest down do not get worse.
    """
    from trellis.numerics.trees.sibling_groups import merge_siblings  # compiles

    check_cutoff(fanout_cutoff)
    index = require_level(hierarchy, level, 1, "the root has no siblings to group.")
    name = name or hierarchy.level_names[index] + SUFFIX
    if name in hierarchy.level_names:
        raise StructureError(f"There is a level {name!r} already. Give the groups another name.")
    categories = categories_of(hierarchy, labels)
    if not categories:
        raise StructureError("Grouping needs areas of interest, but there are none.")
    start = hierarchy.child_start[index - 1]
    limits = group_limits(np.diff(start), fanout_cutoff)
    group = merge_siblings(hierarchy, index, categories, limits)

    order = np.argsort(group, kind="stable")
    firsts, sizes = np.unique(group, return_counts=True)
    parent = hierarchy.parents(index)[firsts]
    n_groups = np.bincount(parent, minlength=hierarchy.size(index - 1))
    codes, starts = list(hierarchy.node_codes), list(hierarchy.child_start)
    starts[index - 1] = _starts(n_groups)
    for below in range(index, hierarchy.n_levels):
        codes[below] = codes[below][order]
        if below < hierarchy.leaf_level:
            counts = np.diff(hierarchy.child_start[below])[order]
            order = segments(hierarchy.child_start[below][:-1][order], counts)
            starts[below] = _starts(counts)
    codes.insert(index, number_codes(codes[index - 1][parent], parent, n_groups))
    starts.insert(index, _starts(sizes))
    names = list(hierarchy.level_names)
    names.insert(index, name)
    return Reduction(hierarchy, tree_of(names, codes, starts), order)


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(counts)))
