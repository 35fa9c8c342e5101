"""Whole counts of areas under bounds on their sums, by HiGHS (in SciPy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from trellis.model.arrays import Floats, Ints
from trellis.model.tables.carried_bounds import Range
from trellis.numerics.feasibility.clashes import clashing_rows

MOST_NODES = 50
"""Branches that are looked at for numbers of the least price. A limit on time would let the outcome
depend on the machine."""

_INFEASIBLE = 2


def least_whole(
    price: Floats, rules: Sequence[optimize.LinearConstraint], most: NDArray | None = None
) -> Ints | None:
    """Whole numbers >= 0 under constraints, of the least price; None if there are none.

    Where the least price is hard to find, the best of what was found, or else any numbers at all.
    """
    bounds = optimize.Bounds(0, np.inf if most is None else most)  # type: ignore[arg-type]
    whole = np.ones(price.size)
    for prices, options in ((price, {"node_limit": MOST_NODES}), (np.zeros(price.size), {})):
        found = optimize.milp(
            prices, constraints=rules, integrality=whole, bounds=bounds, options=options
        )
        if found.x is not None:
            return np.rint(found.x).astype(np.int64)
        if found.status == _INFEASIBLE:
            return None
    return None


class Whose(Enum):
    """What a bound in a clash is a bound on."""

    AREA = auto()
    OTHER_CHILDREN = auto()
    """The children of an area that are not written out, together."""
    GROUP = auto()


@dataclass(frozen=True, slots=True)
class Clashing:
    """Least and greatest answers in one cell of a query that clash with others.

    `number` is that of the area on `level`, of the parent on the level above, or of the group.
    """

    level: int
    whose: Whose
    number: int
    query: str
    cell: int
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Areas or groups that bounds are bounds on."""

    level: int
    whose: Whose
    number: Ints


class Program:
    """Whole numbers >= 0 under linear constraints, a run of columns for each area."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._n_columns = self._n_rows = 0
        self._rows: list[Ints] = []
        self._columns: list[Ints] = []
        self._factors: list[Floats] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []
        self._bounds: list[tuple[int, Units, str, Ints]] = []

    def add_columns(self, n_areas: int) -> Ints:
        """Room for more areas; returns the first column of each."""
        first = self._n_columns + self._width * np.arange(n_areas)
        self._n_columns += n_areas * self._width
        return first

    def add_rows(self, row: Ints, column: Ints, ranges: Range, whose: Units, query: str) -> None:
        """Sums of the columns that go into each row lie within ranges; only rows that bind."""
        lower, upper = ranges.lower.ravel(), ranges.upper.ravel()
        binds = (lower > 0) | np.isfinite(upper)
        number = np.cumsum(binds) - 1
        kept = binds[row]
        self._bounds.append(
            (self._n_rows, whose, query, np.argwhere(binds.reshape(ranges.lower.shape)))
        )
        self._append(number[row[kept]], column[kept], np.ones(int(kept.sum())))
        self._close(lower[binds], upper[binds])

    def add_sums(self, parts: Sequence[tuple[Ints, float, Ints]], n_sums: int) -> None:
        """Areas times their factors add up to 0, in each kind; each area goes into one sum."""
        for column, factor, into in parts:
            kind = np.arange(self._width)
            row = into[:, np.newaxis] * self._width + kind
            where = column[:, np.newaxis] + kind
            self._append(row.ravel(), where.ravel(), np.full(row.size, factor))
        self._close(*np.zeros((2, n_sums * self._width)))

    def add_up_to(self, total: Ints, n_areas: int) -> None:
        """The first areas together hold these numbers of each kind."""
        column = np.arange(n_areas * self._width)
        self._append(column % self._width, column, np.ones(column.size))
        self._close(total, total)

    def nearest(self, wanted: Ints) -> Ints | None:
        """Counts of the first areas, wanted + up - down of least up + down."""
        n = wanted.size
        up, down = self._n_columns + np.arange(2 * n).reshape(2, n)
        self._n_columns += 2 * n
        price = np.repeat([0.0, 1.0], [self._n_columns - 2 * n, 2 * n])
        for column, factor in ((np.arange(n), 1.0), (up, -1.0), (down, 1.0)):
            self._append(np.arange(n), column, np.full(n, factor))
        self._close(wanted.ravel(), wanted.ravel())
        found = self.solve(price)
        return None if found is None else found[:n].reshape(wanted.shape)

    def solve(self, price: Floats | None = None) -> Ints | None:
        """Numbers of least price, or any; None if there are none."""
        if not self._n_rows:
            return np.zeros(self._n_columns, dtype=np.int64)
        matrix, lower, upper = self._system()
        if not self._n_columns:
            return None if (lower > 0).any() else np.zeros(0, dtype=np.int64)
        rule = optimize.LinearConstraint(matrix, lower, upper)
        return least_whole(np.zeros(self._n_columns) if price is None else price, [rule])

    def clash(self) -> list[Clashing]:
        """The fewest bounds that cannot be kept together."""
        if not self._n_rows:
            return []
        matrix, lower, upper = self._system()
        bounds = {first + i: (units, query, cell) for first, units, query, cells in self._bounds
                  for i, cell in enumerate(cells.tolist())}  # fmt: skip
        out = []
        for row in clashing_rows(matrix, lower, upper, list(bounds)):
            units, query, (unit, cell) = bounds[row]
            number = int(units.number[unit])
            ends = float(lower[row]), float(upper[row])
            out.append(Clashing(units.level, units.whose, number, query, cell, *ends))
        return out

    def _system(self) -> tuple[Any, Any, Any]:
        """The rows, with least and greatest values."""
        where = np.concatenate(self._rows), np.concatenate(self._columns)
        matrix = sparse.csr_array(
            (np.concatenate(self._factors), where), shape=(self._n_rows, self._n_columns)
        )
        return matrix, np.concatenate(self._lower), np.concatenate(self._upper)

    def _append(self, row: Ints, column: Ints, factors: Floats) -> None:
        self._rows.append(self._n_rows + row)
        self._columns.append(column)
        self._factors.append(factors)

    def _close(self, lower: NDArray, upper: NDArray) -> None:
        self._lower.append(lower.astype(np.float64))
        self._upper.append(upper.astype(np.float64))
        self._n_rows += lower.size
