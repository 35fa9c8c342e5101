"""Puts a set of leaves on the tree: every node at and below a level is split in two."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.areas import ancestors
from trellis.model.trees.codes import CODE, Codes
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.reduction import Reduction, require_level, tree_of

INSIDE, OUTSIDE = ":in", ":out"
"""Put behind the code of a node that is split."""


def branch(
    hierarchy: Hierarchy, level: int | str, inside: Collection[Any] | NDArray[Any]
) -> Reduction:
    """Split every node at and below `level` into its parts inside and outside a set of leaves.

    `inside` holds one truth value per leaf, or is a collection of leaf codes, or of positions of
    leaves. Nodes with leaves on one side only stay whole.
    """
    marks = _marks(hierarchy, inside)
    top = require_level(hierarchy, level, 1, "the root holds all leaves. Branch below it.")
    if top == hierarchy.leaf_level:
        raise StructureError("Leaves cannot be split. Branch at a level above them.")
    above = [ancestors(hierarchy, i) for i in range(hierarchy.n_levels)]
    order = np.lexsort((~marks, above[top]))  # stable: within a part, leaves keep their order
    side = marks[order]

    codes, starts = [], []
    is_first = np.zeros(order.size, dtype=bool)
    is_first[0] = True
    firsts = np.empty(0, dtype=np.int64)
    for index in range(hierarchy.n_levels):
        node = above[index][order]
        is_first[1:] |= node[1:] != node[:-1]
        if index >= top:
            is_first[1:] |= side[1:] != side[:-1]
        parents, firsts = firsts, np.flatnonzero(is_first)
        if index:
            starts.append(np.append(np.searchsorted(firsts, parents), firsts.size))
        codes.append(_codes(hierarchy.codes(index), node[firsts], side[firsts]))
    return Reduction(hierarchy, tree_of(hierarchy.level_names, codes, starts), order)


def _marks(hierarchy: Hierarchy, inside: Collection[Any]) -> NDArray[np.bool_]:
    n_leaves = hierarchy.sizes[-1]
    given = inside.tolist() if isinstance(inside, np.ndarray) else list(inside)
    kinds = {type(value) for value in given}
    if kinds == {bool} and len(given) == n_leaves:
        marks = np.array(given)
    elif kinds == {str}:
        marks = _marked_codes(hierarchy, given)
    elif kinds == {int} and len(set(given)) == len(given) and set(given) <= set(range(n_leaves)):
        marks = np.zeros(n_leaves, dtype=bool)
        marks[given] = True
    elif not given:
        marks = np.zeros(n_leaves, dtype=bool)
    else:
        raise StructureError(
            f"inside must hold one truth value for each of the {n_leaves} leaves, or codes of "
            "leaves, or different positions of leaves."
        )
    if not marks.any():
        raise StructureError("A branch needs leaves inside, but has none.")
    return marks


def _marked_codes(hierarchy: Hierarchy, given: list[str]) -> NDArray[np.bool_]:
    leaves = hierarchy.codes(hierarchy.leaf_level).tolist()
    wanted = set(given)
    if unknown := sorted(wanted - set(leaves))[:1]:
        raise StructureError(f"{unknown[0]!r} is not a leaf of the hierarchy. Compare the codes.")
    return np.array([leaf in wanted for leaf in leaves])


def _codes(codes: Codes, node: NDArray[np.int64], side: NDArray[np.bool_]) -> Codes:
    is_split = np.bincount(node, minlength=codes.size)[node] > 1
    if not is_split.any():
        return codes[node]
    ends = np.where(side, INSIDE, OUTSIDE).astype(CODE)
    return np.where(is_split, np.strings.add(codes[node], ends), codes[node]).astype(CODE)
