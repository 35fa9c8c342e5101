"""The declared cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from trellis.errors import StructureError


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """Attributes with their categories; a cell is one category of each.

    Cells are ordered like the product of the categories, last attribute fastest. Every record
    falls into exactly one cell. Categories are declared, never read from the records.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]

    def __init__(self, attributes: Mapping[str, Sequence[str]]) -> None:
        object.__setattr__(self, "names", tuple(attributes))
        object.__setattr__(self, "categories", tuple(map(tuple, attributes.values())))
        if not self.names:
            raise StructureError("A schema needs at least one attribute.")
        for name, values in zip(self.names, self.categories, strict=True):
            if not values or len(set(values)) != len(values):
                raise StructureError(
                    f"Attribute {name!r} needs distinct categories, at least one; got {values}."
                )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.categories))

    @property
    def n_cells(self) -> int:
        return prod(self.shape)

    def cells(self) -> list[tuple[str, ...]]:
        """The categories of each cell, in cell order."""
        return list(product(*self.categories))
