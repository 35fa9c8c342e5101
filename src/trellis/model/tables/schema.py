"""The declared cells of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod

from trellis.errors import StructureError

RESERVED = ("total", "detailed")
"""Names of queries that no attribute and no recode may have."""

COLUMNS = (
    "geocode", "level", "query", "cell", "count", "std_error", "lower", "upper",
    "value", "variance",
)  # fmt: skip
"""Columns of published tables and measurements, whose names no attribute of theirs can have."""


@dataclass(frozen=True, slots=True, init=False)
class Recode:
    """A named partition of one attribute's categories into groups."""

    attribute: str
    names: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]

    def __init__(self, attribute: str, groups: Mapping[str, Sequence[str]]) -> None:
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "names", tuple(groups))
        object.__setattr__(self, "groups", tuple(map(tuple, groups.values())))


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """Attributes with their categories; a cell is one category of each.

    Cells are ordered like the product of the categories, last attribute fastest. Every record
    falls into exactly one cell. Categories are declared, never read from the records. Recodes
    give coarser versions of an attribute a name that queries can use.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    recodes: tuple[tuple[str, Recode], ...]

    def __init__(
        self,
        attributes: Mapping[str, Sequence[str]],
        recodes: Mapping[str, Recode] | None = None,
    ) -> None:
        object.__setattr__(self, "names", tuple(attributes))
        object.__setattr__(self, "categories", tuple(map(tuple, attributes.values())))
        object.__setattr__(self, "recodes", tuple((recodes or {}).items()))
        if not self.names:
            raise StructureError("A schema needs at least one attribute.")
        for name, values in zip(self.names, self.categories, strict=True):
            if not values or len(set(values)) != len(values):
                raise StructureError(
                    f"Attribute {name!r} needs distinct categories, at least one; got {values}."
                )
        for name in chain(self.names, (name for name, _ in self.recodes)):
            if name in RESERVED or "*" in name or name != name.strip() or not name:
                raise StructureError(
                    f"{name!r} cannot name an attribute or a recode: total, detailed and names "
                    "with a star or outer blanks are taken for queries."
                )
        for name, recode in self.recodes:
            self._check_recode(name, recode)

    def _check_recode(self, name: str, recode: Recode) -> None:
        """Every category of the attribute must lie in exactly one group."""
        if name in self.names:
            raise StructureError(f"{name!r} names an attribute and a recode. Rename the recode.")
        if recode.attribute not in self.names:
            raise StructureError(
                f"Recode {name!r} is of the unknown attribute {recode.attribute!r}; there are "
                f"{', '.join(self.names)}."
            )
        declared = set(self.categories[self.names.index(recode.attribute)])
        used = Counter(chain.from_iterable(recode.groups))
        if not all(recode.groups):
            raise StructureError(f"Recode {name!r} has a group without categories.")
        for problem, categories in (
            ("has unknown categories", [c for c in used if c not in declared]),
            ("puts categories in two groups", [c for c, times in used.items() if times > 1]),
            ("leaves out categories", sorted(declared - set(used))),
        ):
            if categories:
                raise StructureError(
                    f"Recode {name!r} of {recode.attribute!r} {problem}: "
                    f"{', '.join(map(repr, categories[:5]))}. Each category belongs to exactly "
                    "one group."
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
