"""Redraws the level above the leaves: leaves of the same areas of interest come together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.areas import Category, ancestors, same_leaves
from trellis.model.trees.codes import CODE, Codes
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import MOST_CUTOFF
from trellis.planning.spine.reduction import Reduction, tree_of

Cut = Literal["fill", "even"]
Labels = Sequence[str | None] | NDArray[Any] | Category
Several = Labels | Mapping[str, Labels] | Sequence[Labels]
"""One entity code, or None, per leaf; or that for each of several categories."""


def regroup_leaves(
    hierarchy: Hierarchy, labels: Several, fanout_cutoff: int = 12, cut: Cut = "fill"
) -> Reduction:
    """Groups of leaves in the same combination of areas, within each node two levels above.

    Of n leaves below such a node, at most int(sqrt(n)) + `fanout_cutoff` come into one group. A
    longer run is cut so that each group is filled (10 by 4: 4, 4, 2) or evened out (3, 3, 4).
    """
    check_cutoff(fanout_cutoff)
    if cut not in ("fill", "even"):
        raise StructureError(f"A run is cut by fill or even, not by {cut!r}.")
    if hierarchy.n_levels < 3:
        raise StructureError(
            "Regrouping redraws the level between the root and the leaves, but there is none. "
            "Leave regroup_leaves out."
        )
    level = hierarchy.n_levels - 2
    parent = ancestors(hierarchy, level - 1)
    combination = combined(hierarchy, labels)
    order = np.lexsort((combination, parent))
    parents, kinds = parent[order], combination[order]

    is_run = _changes(parents) | _changes(kinds)
    run_start = np.flatnonzero(is_run)
    run = np.cumsum(is_run) - 1
    length = np.diff(np.append(run_start, order.size))
    number = np.arange(order.size) - run_start[run]  # of a leaf within its run
    limit = group_limits(np.bincount(parent), fanout_cutoff)[parents[run_start]]
    if cut == "fill":
        piece = number // limit[run]
    else:
        pieces = -(-length // limit)
        piece = ((number + 1) * pieces[run] - 1) // length[run]

    group_start = np.flatnonzero(is_run | _changes(piece))
    # Groups are in the order of their first leaves, whatever the areas are called.
    rank = np.argsort(order[group_start], kind="stable")
    sizes = np.diff(np.append(group_start, order.size))[rank]
    leaf_order = order[segments(group_start[rank], sizes)]
    group_parent = parents[group_start[rank]]

    n_groups = np.bincount(group_parent)
    codes = number_codes(hierarchy.codes(level - 1)[group_parent], group_parent, n_groups)
    names, old = hierarchy.level_names, hierarchy.node_codes
    return Reduction(
        hierarchy,
        tree_of(
            names,
            [*old[:level], codes, old[-1][leaf_order]],
            [
                *hierarchy.child_start[: level - 1],
                np.concatenate(([0], np.cumsum(n_groups))),
                np.concatenate(([0], np.cumsum(sizes))),
            ],
        ),
        leaf_order,
    )


def combined(hierarchy: Hierarchy, labels: Several) -> NDArray[np.int64]:
    """A number for every leaf; equal numbers mean the same area in every category."""
    numbers = np.zeros(hierarchy.sizes[-1], dtype=np.int64)
    for position, category in enumerate(categories_of(hierarchy, labels)):
        if position:  # so that products stay small
            numbers = np.unique(numbers, return_inverse=True)[1]
        numbers = numbers * (category.size + 1) + category.member + 1
    return numbers


def categories_of(hierarchy: Hierarchy, labels: Several) -> list[Category]:
    """The categories that labels describe, each with one entry per leaf."""
    given: list[Any]
    if isinstance(labels, Mapping):
        given = list(labels.values())
    elif (
        isinstance(labels, list | tuple) and labels and not isinstance(labels[0], str | int | None)
    ):
        given = list(labels)
    else:
        given = [labels]
    return [same_leaves(Category.of(one), hierarchy) for one in given]


def group_limits(n_members: NDArray[np.int64], fanout_cutoff: int) -> NDArray[np.int64]:
    """The most members of one group, by the number of members of each parent."""
    sizes, of = np.unique(n_members, return_inverse=True)
    roots = np.array([isqrt(int(n)) for n in sizes], dtype=np.int64)
    return np.maximum(roots[of] + fanout_cutoff, 1)


def check_cutoff(fanout_cutoff: int) -> None:
    is_whole = isinstance(fanout_cutoff, int) and not isinstance(fanout_cutoff, bool)
    if not is_whole or not 0 <= fanout_cutoff <= MOST_CUTOFF:
        raise StructureError(f"fanout_cutoff must be a whole number of at least 0, not "
                             f"{fanout_cutoff!r}.")  # fmt: skip


def number_codes(
    parents: Codes, group_parent: NDArray[np.int64], n_groups: NDArray[np.int64]
) -> Codes:
    """Codes of groups: that of the parent, and a number within it."""
    first = np.concatenate(([0], np.cumsum(n_groups)))[:-1]
    number = np.arange(group_parent.size) - first[group_parent] + 1
    return np.strings.add(parents, np.strings.add(".", number.astype(str)).astype(CODE))


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.concatenate(([True], values[1:] != values[:-1]))


def segments(begin: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin[0], begin[0] + 1, .., then begin[1], .."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1]) + np.repeat(begin - (ends - sizes), sizes)
