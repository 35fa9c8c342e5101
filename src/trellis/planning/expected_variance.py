"""Variances of the published estimates as a function of how the budget is split.

No count is needed: the shape of the tree, the queries and the law of the noise decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi

import numpy as np
from numpy.typing import NDArray

from trellis.model.queries import Query
from trellis.planning.components import Component
from trellis.planning.spine_shape import Numbers, SpineShape

STEP = 1e-40
"""Imaginary, so that no rounding spoils a derivative."""
_LEAST_PARAMETER = 2e-3
"""Noise below it is nil: its variance is under 1e-100."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A query on a level that may get a part of the budget."""

    level: int
    query: Query


@dataclass(frozen=True, eq=False)
class VarianceModel:
    """A tree, what may be measured on it, and the noise that a budget buys.

    `unit` / budget is the parameter of the noise. `exact` are the levels whose totals are exact.
    """

    shape: SpineShape
    parts: tuple[Component, ...]
    slots: tuple[Slot, ...]
    exact: tuple[int, ...]
    kind: str
    unit: float

    @cached_property
    def n_cells(self) -> int:
        return sum(part.dimension for part in self.parts)

    def by_component(self, budgets: Numbers) -> list[list[Numbers]]:
        """For each component, the variances of all entries by level."""
        precisions = [1 / noise_variance(self.kind, self.unit / x) for x in budgets.tolist()]
        solved = []
        for part in self.parts:
            level_precision: list[complex] = [0.0] * self.shape.n_levels
            for slot, precision in zip(self.slots, precisions, strict=True):
                if part.is_seen_by(slot.query):
                    level_precision[slot.level] += precision * self.n_cells / slot.query.n_cells
            exact = self.exact if part.is_total else ()
            solved.append(self.shape.variances(level_precision, exact))
        return solved

    def of_query(self, solved: list[list[Numbers]], level: int, query: Query) -> Numbers:
        """The variance of a cell of the query, for every entry of a level."""
        cells_in_each = self.n_cells / query.n_cells
        seen = [(p, v) for p, v in zip(self.parts, solved, strict=True) if p.is_seen_by(query)]
        terms = [v[level] * (p.dimension * cells_in_each / query.n_cells) for p, v in seen]
        return np.sum(terms, axis=0)

    def derivatives(
        self, budgets: NDArray[np.float64]
    ) -> tuple[list[list[Numbers]], list[list[list[Numbers]]]]:
        """`by_component`, and its derivatives by the logarithm of each slot's budget."""
        slopes = []
        for i, budget in enumerate(budgets):
            stepped = budgets.astype(np.complex128)
            stepped[i] += 1j * STEP * budget
            slopes.append(
                [[np.imag(v) / STEP for v in levels] for levels in self.by_component(stepped)]
            )
        return self.by_component(budgets), slopes


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
