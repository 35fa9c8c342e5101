"""Variances of the published estimates as a function of how the budget is split.

No count is needed: the shape of the tree, the queries and the law of the noise decide. The cells of
an area are split into the subspaces of the algebra of queries, on which the tree is solved one by
one; that is exact with recodes of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.cell_kinds import CellKinds
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.algebra.subspaces import Blocks
from trellis.planning.forecast.tree_shape import Floats, SolvedTree, TreeShape

STEP = 1e-40
"""Imaginary, so that no rounding spoils a derivative."""
_LEAST_PARAMETER = 2e-3
"""Noise below it is nil: its variance is under 1e-100."""
_LEAST_VARIANCE = 1e-12
"""Added to that of all noise: matrices with larger precisions cannot be inverted well."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Queries on a level that get a part of the budget together, each a stated part of it."""

    level: int
    queries: tuple[tuple[Query, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A weighted sum of variances of one query on one level.

    `entries` weighs the entries of the level, and `cells` the query's kinds of cells.
    """

    level: int
    query: Query
    entries: Floats
    cells: Floats


@dataclass(frozen=True, eq=False)
class VarianceModel:
    """A tree, what may be measured on it, and the noise that a budget buys.

    `unit` / budget is the parameter of the noise. `exact` are the levels whose totals are exact.
    """

    shape: TreeShape
    algebra: Algebra
    slots: tuple[Slot, ...]
    exact: tuple[int, ...]
    kind: str
    unit: float
    _kinds: dict[str, CellKinds] = field(default_factory=dict)

    def kinds(self, query: Query) -> CellKinds:
        """The kinds of cells of a query: cells of one kind have the same variance."""
        if query.name not in self._kinds:
            self._kinds[query.name] = self.algebra.cell_kinds(query)
        return self._kinds[query.name]

    def variances(self, budgets: Floats, asked: Sequence[tuple[int, Query]]) -> list[Floats]:
        """For each level and query: entries x kinds of cells."""
        found = [np.zeros(1)] * len(asked)
        precisions, _ = self._precisions(budgets)
        for i, solved in self._solved(precisions):
            for j, (level, query) in enumerate(asked):
                found[j] = found[j] + self.kinds(query).squares(i, solved.final[level])
        return [np.maximum(variances, 0.0) for variances in found]

    def slopes(self, budgets: Floats, sums: Sequence[Sequence[Load]]) -> tuple[Floats, Floats]:
        """Sums of loads, and their derivatives by the logarithm of each slot's budget."""
        values, slopes = np.zeros(len(sums)), np.zeros((len(sums), len(self.slots)))
        precisions, steps = self._precisions(budgets)
        for i, solved in self._solved(precisions):
            for j, loads in enumerate(sums):
                matrices = self._matrices(loads, i)
                values[j] += sum((m * solved.final[level]).sum() for level, m in matrices.items())
                by_level = np.array(solved.slopes(matrices))[self._asked.level]
                by_query = steps * (by_level * self._asked.operators[i]).sum(axis=(1, 2))
                slopes[j] += np.bincount(self._asked.slot, by_query)
        return values, slopes

    def _matrices(self, loads: Sequence[Load], subspace: int) -> dict[int, Floats]:
        """What each entry of a level is multiplied with, on one subspace."""
        matrices: dict[int, Floats] = {}
        for load in loads:
            matrix = self.kinds(load.query).weighted(subspace, load.cells)
            part = load.entries[:, np.newaxis, np.newaxis] * matrix
            matrices[load.level] = matrices[load.level] + part if load.level in matrices else part
        return matrices

    def _solved(self, precisions: Floats) -> Iterator[tuple[int, SolvedTree]]:
        """The tree, solved on each subspace in turn."""
        for i, subspace in enumerate(self.algebra.subspaces):
            operators = self._asked.operators[i]
            size = operators.shape[1]
            levels = [np.zeros((size, size)) for _ in range(self.shape.n_levels)]
            for level, precision, operator in zip(
                self._asked.level, precisions, operators, strict=True
            ):
                levels[level] += precision * operator
            # The first coordinate without contrasts is the total.
            is_total = (np.arange(size) == 0) & (not subspace)
            known = max(self.exact, default=-1)
            free = [~is_total | (level > known) for level in range(self.shape.n_levels)]
            yield i, self.shape.solve(levels, free)

    def _precisions(self, budgets: Floats) -> tuple[Floats, Floats]:
        """Of all queries of all slots, and their derivatives by the logarithm of the budgets."""
        stepped = budgets[self._asked.slot] * self._asked.part * (1 + 1j * STEP)
        values = [
            1 / (noise_variance(self.kind, self.unit / budget) + _LEAST_VARIANCE)
            for budget in stepped.tolist()
        ]
        return np.real(values), np.imag(values) / STEP

    @cached_property
    def _asked(self) -> _Asked:
        rows = [(i, s.level, q, part) for i, s in enumerate(self.slots) for q, part in s.queries]
        slot, level, queries, part = zip(*rows, strict=True)
        operators = zip(*(self.algebra.gram(query) for query in queries), strict=True)
        return _Asked(
            np.array(slot), np.array(level), np.array(part), [np.concatenate(o) for o in operators]
        )


class _Asked(NamedTuple):
    """All queries of all slots, one after the other, and Q'Q of each on every subspace."""

    slot: NDArray[np.int64]
    level: NDArray[np.int64]
    part: Floats
    operators: Blocks


def median(values: Floats, numbers: NDArray[np.int64]) -> float:
    """The median of values, each of which occurs some number of times."""
    order = np.argsort(values, axis=None)
    upto = np.cumsum(numbers.ravel()[order])
    middle = [(upto[-1] + 1) // 2, upto[-1] // 2 + 1]
    return float(values.ravel()[order][np.searchsorted(upto, middle)].mean())


def noise_variance(kind: str, parameter: complex) -> complex:
    """The variance of discrete noise; the parameter may have an imaginary step.

    Discrete Laplace: 1 / (2 sinh^2(1 / (2 scale))). Discrete Gaussian: the sum over z^2, or its
    dual after Poisson summation, whichever converges faster; see `privacy.mechanisms`.
    """
    parameter = max(parameter, _LEAST_PARAMETER, key=abs)
    if kind == "discrete_laplace":
        return 0.5 / np.sinh(0.5 / parameter) ** 2
    if abs(parameter) <= 0.5:
        return _mean_square(0.5 / parameter)
    dual = _mean_square(2 * pi**2 * parameter)
    return parameter * (1 - 4 * pi**2 * parameter * dual)


def _mean_square(rate: complex) -> complex:
    """The mean of z^2 over all integers z with weights exp(-rate z^2), for rate >= 1."""
    z = np.arange(1, 9)
    weights = np.exp(-rate * z * z)
    return 2 * (z * z * weights).sum() / (1 + 2 * weights.sum())
