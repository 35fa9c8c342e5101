"""How far two tables of group sizes are apart, and how far one is from adding up.

Pure functions of whole tables, areas x sizes, one per level. Compared with the truth they reveal
it: such figures are confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.model import Hierarchy

IntArray = NDArray[np.int64]


def l1_error(table: IntArray, other: IntArray) -> int:
    """The sum of |n_rs - n'_rs| over areas and sizes; at most twice the number of groups."""
    return int(np.abs(table - other).sum())


def earth_movers_distance(table: IntArray, other: IntArray) -> int:
    """The sum over areas of the members that must join or leave groups to turn one into the other.

    For an area with equally many groups in both that is the sum over sizes of |c_s - c'_s|, c the
    cumulative counts. With d more groups in one, these are as if they were larger than all sizes.
    """
    return int(np.abs(np.cumsum(table - other, axis=1)).sum())


@dataclass(frozen=True, slots=True)
class Violations:
    """Broken promises of a table, counted.

    `sums` counts pairs of a parent and a size where the children add up to something else, as the
    paper's "CV" does; `negative` cells below 0; `totals` is 1 if the root does not hold the public
    number of groups; `areas` counts areas that do not, in all levels (only the cumulative joint
    method promises that).
    """

    sums: int
    negative: int
    totals: int
    areas: int

    @property
    def count(self) -> int:
        """Those of the promises that every exact mechanism makes."""
        return self.sums + self.negative + self.totals


def violations(hierarchy: Hierarchy, tables: Sequence[IntArray], groups: IntArray) -> Violations:
    """Count what is wrong with `tables`; `groups` are the public numbers of groups by leaf."""
    sums = sum(
        int(np.count_nonzero(hierarchy.sum_children(level, tables[level + 1]) != tables[level]))
        for level in range(hierarchy.n_levels - 1)
    )
    wrong = [
        table.sum(axis=1) != count
        for table, count in zip(tables, hierarchy.sum_up(groups), strict=True)
    ]
    return Violations(
        sums,
        sum(int(np.count_nonzero(table < 0)) for table in tables),
        int(wrong[0][0]),
        sum(int(np.count_nonzero(w)) for w in wrong),
    )
