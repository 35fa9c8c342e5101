"""Areas of interest: named sets of leaves that need not be nodes of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.codes import CODE, Codes
from trellis.model.trees.hierarchy import Hierarchy

OUTSIDE = -1
"""In place of an entity: a leaf that belongs to none. All such leaves form the rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """Entities of one kind, such as places. A leaf belongs to one of them, or to none.

    `member` holds, for every leaf in order, the position of its entity in `codes`, or `OUTSIDE`.
    """

    name: str
    codes: Codes
    member: NDArray[np.int32]

    def __post_init__(self) -> None:
        n_leaves = np.bincount(self.member[self.member >= 0], minlength=self.codes.size)
        if n_leaves.size > self.codes.size or (self.member < OUTSIDE).any():
            raise StructureError(f"A leaf belongs to an entity that {self.name!r} does not have.")
        if (empty := np.flatnonzero(n_leaves == 0)).size:
            code = str(self.codes[empty[0]])
            raise StructureError(
                f"Entity {code!r} of {self.name!r} has no leaves. Drop it, or list its leaves."
            )

    @classmethod
    def of(cls, labels: Sequence[Any] | NDArray[Any] | Category, name: str = "areas") -> Category:
        """From one entity code, or None, per leaf; entities are ordered by their codes.

        Codes are text, or whole numbers, which become text.
        """
        if isinstance(labels, Category):
            return labels
        values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        texts: dict[Any, str] = {}
        for code in dict.fromkeys(values):
            if code is None:
                continue
            if not isinstance(code, str | int) or isinstance(code, bool) or code == "":
                raise StructureError(f"Entity codes are text, or None; {code!r} is neither.")
            texts[code] = str(code)
        codes = sorted(set(texts.values()))
        number = {code: i for i, code in enumerate(codes)}
        position = {code: number[text] for code, text in texts.items()} | {None: OUTSIDE}
        member = np.fromiter((position[value] for value in values), np.int32, len(values))
        return cls(name, np.array(codes, dtype=CODE), member)

    @classmethod
    def of_level(cls, hierarchy: Hierarchy, level: int | str) -> Self:
        """The areas of a level, each with the leaves below it."""
        index = hierarchy.index(level)
        member = ancestors(hierarchy, index).astype(np.int32)
        return cls(hierarchy.level_names[index], hierarchy.codes(index), member)

    @property
    def size(self) -> int:
        return self.codes.size

    @property
    def n_leaves(self) -> int:
        return self.member.size

    def sums(self, leaves: NDArray[Any]) -> NDArray[Any]:
        """The sums over the entities, from an array of leaves by cell."""
        inside = self.member >= 0
        sums = np.zeros((self.size, leaves.shape[1]), dtype=leaves.dtype)
        np.add.at(sums, self.member[inside], leaves[inside])
        return sums

    def carried(self, leaf_order: NDArray[np.int64]) -> Category:
        """The same entities for leaves in another order."""
        return Category(self.name, self.codes, self.member[leaf_order])


def ancestors(hierarchy: Hierarchy, level: int) -> NDArray[np.int64]:
    """For every leaf, the position of the node above it on `level`."""
    start = np.arange(hierarchy.size(level) + 1)
    for below in hierarchy.child_start[level:]:
        start = below[start]
    return np.repeat(np.arange(hierarchy.size(level)), np.diff(start))


def same_leaves(category: Category, hierarchy: Hierarchy) -> Category:
    """The category, if it has one entry for each leaf."""
    if category.n_leaves != hierarchy.size(hierarchy.leaf_level):
        raise StructureError(
            f"{category.name!r} labels {category.n_leaves} leaves, but the hierarchy has "
            f"{hierarchy.size(hierarchy.leaf_level)}. Give one entity code, or None, per leaf."
        )
    return category


@dataclass(frozen=True, slots=True)
class AreaPlan:
    """What a plan says about a category of areas that is released."""

    name: str
    entities: int
    digest: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What a spine does to a category of areas, or a published level: means before and after."""

    name: str
    is_level: bool
    entities: int
    distance_before: float
    distance_after: float
    error_before: float
    error_after: float

    @property
    def ratio(self) -> float:
        """Expected standard error after, as a multiple of that before; 1 where both are exact."""
        return self.error_after / self.error_before if self.error_before else 1.0
