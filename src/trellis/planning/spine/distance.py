"""How far areas of interest are from a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy


def distances(
    hierarchy: Hierarchy, labels: Sequence[str | None] | NDArray[Any] | Category
) -> dict[str, int]:
    """The off-spine distance of every entity: nodes to add and subtract to form it.

    `labels` holds one entity code, or None, per leaf in order. An entity that is a node has
    distance 1.
    """
    from trellis.numerics.trees.areas import entity_distances  # compiles

    category = Category.of(labels)
    found = entity_distances(hierarchy, category)
    return dict(zip(category.codes.tolist(), found.tolist(), strict=True))
