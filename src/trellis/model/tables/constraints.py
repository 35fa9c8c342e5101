"""What a release of histograms must keep exactly: linear constraints and impossible cells.

A constraint bounds the answers of one query on the areas of one level by a public table. Answers
are counts, so they are at least 0 anyway, and `NO_BOUND` marks the entries that are left free.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError

NO_BOUND = -1
"""An entry of a right-hand side that binds nothing."""

ALONE = -1
"""In `LinearConstraint.group_of`: an area that belongs to no group."""


class Sense(StrEnum):
    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True, eq=False)
class LinearConstraint:
    """`query` `sense` `bound` on `level`: one right-hand side per area and cell of the query.

    `bound` has shape (areas, cells of the query), or (groups, cells) if `group_of` is given: then
    the answers of the areas of a group are added up before they are compared. `group_of` has one
    group, or `ALONE`, for each area of the level, and the areas of a group are siblings.

    With `binds_records`, true counts keep the bound: records that do not are refused. Otherwise it
    binds the published counts alone, the records were never compared with it, and no margin may
    rest on it.
    """

    label: str
    level: str
    query: str
    sense: Sense
    bound: NDArray[np.int64]
    group_of: NDArray[np.int64] | None = None
    binds_records: bool = True

    def __post_init__(self) -> None:
        if self.bound.ndim != 2 or self.bound.dtype != np.int64:
            raise StructureError(f"{self.label}: bounds must be int64, areas x cells of the query.")
        if self.bound.size and self.bound.min() < NO_BOUND:
            raise StructureError(f"{self.label}: a bound on a count cannot be negative.")
        groups = self.group_of
        if groups is not None and (
            groups.ndim != 1
            or groups.dtype != np.int64
            or (groups.size and not ALONE <= groups.min() <= groups.max() < len(self.bound))
        ):
            raise StructureError(
                f"{self.label}: groups must be numbered from 0 to {len(self.bound) - 1}."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """All constraints of a release; `impossible` marks the cells that are empty everywhere."""

    linear: tuple[LinearConstraint, ...]
    impossible: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.impossible.ndim != 1 or self.impossible.dtype != np.bool_:
            raise StructureError("Impossible cells are one boolean for each cell of the schema.")

    @classmethod
    def none(cls, n_cells: int) -> Constraints:
        return cls((), np.zeros(n_cells, dtype=bool))

    def of_records(self, *, zeros: bool) -> Constraints:
        """Those that bind the records; `zeros` says whether the impossible cells do."""
        linear = tuple(c for c in self.linear if c.binds_records)
        return Constraints(linear, self.impossible & zeros)

    def on(self, level: str) -> tuple[LinearConstraint, ...]:
        """The constraints of one level."""
        return tuple(c for c in self.linear if c.level == level)
