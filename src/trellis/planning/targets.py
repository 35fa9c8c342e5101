r"""The least budget that meets stated accuracies, which of them bind, and what each costs.

A target asks that every cell of every area of a level has f * std_error <= within, with f standard
errors for the confidence asked (`trellis.model.confidence`). With the budgets x of all slots,

    minimise  sum_i x_i   over   Var_j(x) <= (within_j / f_j)^2   for every cell j of every target.

For Gaussian noise this is convex. It is solved over log x, with the cells that are worst so far as
constraints; cells that turn out worse are added until none is left. The multipliers of the
constraints tell what a target costs at the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from trellis.model.confidence import standard_errors_within
from trellis.model.queries import Query
from trellis.planning.budget.roots import falling_root
from trellis.planning.data_free import promising, starts
from trellis.planning.expected_variance import Load, VarianceModel, median

Floats = NDArray[np.float64]

_MET = 1e-9
"""Logarithms of variances above their limit that count as rounding."""
_ROUNDS = 40
_OPTIMAL = 0.01
"""Budgets this close to the conditions of an optimum count as one: shares were rounded."""
_LEAST_RATIO = 1e-300
_LEAST_PART = 1e-7
"""No budget falls below this part of where the search began; shares are rounded more coarsely."""


@dataclass(frozen=True, slots=True)
class Target:
    """All cells of all areas of a level within so many units of the truth, so confidently."""

    level: int
    level_name: str
    query: Query
    within: Fraction
    confidence: Fraction

    @property
    def label(self) -> str:
        share = f"{100 * float(self.confidence):g} %"
        return f"{self.level_name} {self.query.name} within {float(self.within):g} ({share})"

    def factor(self, kind: str) -> float:
        return standard_errors_within(self.confidence, laplace=kind == "discrete_laplace")

    def most_variance(self, kind: str) -> float:
        return (float(self.within) / self.factor(kind)) ** 2


@dataclass(frozen=True, slots=True)
class Met:
    """How far a target is met.

    `reached` is the half-width that holds for every area and cell, `median` for half of them;
    `budget_per_unit` is what one unit more in `within` would save, 0 for targets that do not bind.
    """

    target: Target
    reached: float
    median: float
    budget_per_unit: float

    @property
    def is_met(self) -> bool:
        return self.reached <= float(self.target.within) * (1 + _MET)

    @property
    def binds(self) -> bool:
        return self.budget_per_unit > 0


def least_budgets(model: VarianceModel, targets: Sequence[Target]) -> Floats:
    """The budgets of all slots with the least sum that meets every target."""
    problem = _Problem(model, targets)
    begin = promising(starts(model), lambda y: np.log(np.exp(y).sum()) + problem.scale(y))
    return min(map(problem.solve, begin), key=lambda found: found.sum())


def least_total(model: VarianceModel, targets: Sequence[Target], shares: Floats) -> float:
    """The least budget that meets every target when the shares are given."""
    problem = _Problem(model, targets)
    return exp(problem.scale(np.log(shares)))


def how_far_met(model: VarianceModel, targets: Sequence[Target], budgets: Floats) -> list[Met]:
    """What every target reaches with these budgets, and what it costs at the margin."""
    costs = _Problem(model, targets).marginal_costs(np.log(budgets))
    found = model.variances(budgets, [(target.level, target.query) for target in targets])
    lines = []
    for target, cost, variances in zip(targets, costs, found, strict=True):
        areas = model.shape.published[target.level]
        widths = np.sqrt(variances) * target.factor(model.kind)
        # cost is the derivative by log variance, and the variance goes with the square of within
        per_unit = 2 * float(cost) / float(target.within)
        half = median(widths, np.outer(areas, model.kinds(target.query).sizes))
        lines.append(Met(target, float(widths[areas > 0].max()), half, per_unit))
    return lines


Cell = tuple[int, int]
"""A target, and an entry and kind of cell of its level and query, counted through."""


class _Problem:
    """Logarithms of variances over their limits, as functions of log budgets."""

    def __init__(self, model: VarianceModel, targets: Sequence[Target]) -> None:
        self.model, self.targets = model, targets
        self.limits = [target.most_variance(model.kind) for target in targets]
        self._slopes = lru_cache(4)(self._slopes_once)

    def ratios(self, log_budgets: Floats) -> list[Floats]:
        """Variance over limit for every cell of every target."""
        asked = [(target.level, target.query) for target in self.targets]
        found = self.model.variances(np.exp(log_budgets), asked)
        published = [self.model.shape.published[level] > 0 for level, _ in asked]
        return [
            np.where(shown[:, np.newaxis], variances, 0.0).ravel() / limit
            for variances, shown, limit in zip(found, published, self.limits, strict=True)
        ]

    def slopes(self, log_budgets: Floats, cells: Sequence[Cell]) -> tuple[Floats, Floats]:
        """Log ratios of some cells, and their derivatives by all log budgets."""
        return self._slopes(log_budgets.tobytes(), tuple(cells))

    def _slopes_once(self, key: bytes, cells: tuple[Cell, ...]) -> tuple[Floats, Floats]:
        loads = [[self._load(*cell)] for cell in cells]
        values, slopes = self.model.slopes(np.exp(np.frombuffer(key)), loads)
        values = np.maximum(values, _LEAST_RATIO)
        return np.log(values), slopes / values[:, np.newaxis]

    def _load(self, target: int, position: int) -> Load:
        asked = self.targets[target]
        n_kinds = len(self.model.kinds(asked.query).sizes)
        entries = np.zeros(self.model.shape.published[asked.level].size)
        entry, kind = divmod(position, n_kinds)
        entries[entry] = 1 / self.limits[target]
        return Load(asked.level, asked.query, entries, np.eye(n_kinds)[kind])

    def worst(self, log_budgets: Floats) -> list[tuple[float, int]]:
        """For every target the largest log ratio and its cell."""
        ratios = self.ratios(log_budgets)
        return [(float(np.log(max(r.max(), _LEAST_RATIO))), int(r.argmax())) for r in ratios]

    def scale(self, log_budgets: Floats) -> float:
        """The log factor by which all budgets must grow so that the targets are just met."""

        def excess(shift: float) -> float:
            return max(ratio for ratio, _ in self.worst(log_budgets + shift))

        return falling_root(excess, 0.0)

    def solve(self, start: Floats) -> Floats:
        """Budgets with the least sum, from a start of any size."""
        start = np.exp(start + self.scale(start))
        active: list[Cell] = []
        found = start
        for _ in range(_ROUNDS):
            worst = self.worst(np.log(found))
            if active and max(ratio for ratio, _ in worst) <= _MET:
                break
            new = [(k, entry) for k, (_, entry) in enumerate(worst) if (k, entry) not in active]
            if not new:
                break
            active += new
            found = self._solve_for(active, start)
        return found * exp(self.scale(np.log(found)))

    def _solve_for(self, active: list[Cell], start: Floats) -> Floats:
        """Meet the targets for these cells alone.

        The precision of an estimate is concave in the precisions of what is measured, so its
        logarithm, log limit - log variance >= 0, makes a convex constraint.
        """

        def values(z: Floats) -> Floats:
            return -self.slopes(np.log(z * start), active)[0]

        def jacobian(z: Floats) -> Floats:
            return -self.slopes(np.log(z * start), active)[1] / z

        sizes = start / start.sum()
        return (
            start
            * minimize(
                lambda z: (float(sizes @ z), sizes),
                np.ones(start.size),
                jac=True,
                method="SLSQP",
                bounds=[(_LEAST_PART, 1 / size) for size in sizes],
                constraints={"type": "ineq", "fun": values, "jac": jacobian},
                options={"ftol": 1e-13, "maxiter": 300},
            ).x
        )

    def marginal_costs(self, log_budgets: Floats) -> Floats:
        """By target, what the least budget loses when the log of its limit grows.

        Where the budgets are optimal, the conditions of Karush, Kuhn and Tucker hold: the gradient
        of the sum is a non-negative combination of the gradients of the targets that bind.
        Elsewhere all budgets are scaled together, and the worst target alone decides.
        """
        worst = self.worst(log_budgets)
        _, slopes = self.slopes(log_budgets, [(k, cell) for k, (_, cell) in enumerate(worst)])
        highest = max(r for r, _ in worst)
        binding = [k for k, (r, _) in enumerate(worst) if r > highest - 1e-3]
        budgets = np.exp(log_budgets)
        weights, gap = nnls(-slopes[binding].T, budgets)
        costs = np.zeros(len(self.targets))
        if gap > _OPTIMAL * np.linalg.norm(budgets):
            first = max(range(len(worst)), key=lambda k: worst[k][0])
            costs[first] = budgets.sum() / -slopes[first].sum()
            return costs
        costs[binding] = np.where(weights > 1e-6 * budgets.sum(), weights, 0.0)
        return costs
