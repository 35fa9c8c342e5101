r"""The least budget that meets stated accuracies, which of them bind, and what each costs.

A target asks that all cells of all areas of a level, or of a category of areas of interest, have
f * std_error <= within, with f standard errors for the confidence asked
(`trellis.model.plans.confidence`). With the budgets x of all slots,

    minimise  sum_i x_i   over   Var_j(x) <= (within_j / f_j)^2   for every cell j of every target.

For Gaussian noise this is convex. It is solved over log x, with the cells that are worst so far as
constraints; cells that turn out worse are added until none is left. The multipliers of the
constraints tell what a target costs at the margin (`margins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from trellis.execution.progress import in_parts
from trellis.model.plans.confidence import standard_errors_within
from trellis.model.tables.queries import Query
from trellis.planning.allocation.data_free import promising, starts
from trellis.planning.allocation.rational_shares import DENOMINATOR
from trellis.planning.allocation.target_prices import Margins, margins
from trellis.planning.budget.roots import falling_root
from trellis.planning.forecast.expected_variance import Load, VarianceModel, median

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MET = 1e-9
"""Logarithms of variances above their limit that count as rounding."""
_ROUNDS = 40
_NEAR = 1e-3
"""Logarithms of variances this close bind together: budgets were rounded."""
_MOST_BINDING = 50
"""This many entries of a target, the worst, are looked at."""
_LEAST_RATIO = 1e-300
_LEAST_PART = 1e-7
"""No budget falls below this part of where the search began; shares are rounded more coarsely."""


@dataclass(frozen=True, slots=True)
class Target:
    """All cells of all areas of a level within `within` units of the truth, with this confidence.

    `name` is that of the level, or of a category of areas of interest; these have no `level`.
    """

    level: int | None
    name: str
    query: Query
    within: Fraction
    confidence: Fraction

    @property
    def label(self) -> str:
        share = f"{100 * float(self.confidence):g} %"
        return f"{self.name} {self.query.name} within {float(self.within):g} ({share})"

    def factor(self, kind: str) -> float:
        return standard_errors_within(self.confidence, laplace=kind == "discrete_laplace")

    def most_variance(self, kind: str) -> float:
        return (float(self.within) / self.factor(kind)) ** 2


@dataclass(frozen=True, slots=True)
class Met:
    """How far a target is met.

    `reached` is the half-width that holds for every area and `median` for half of them. A target
    `binds` if less of the budget would miss it. `budget_per_unit` is what one unit more in its
    `within` alone would save: 0 where others bind at the same place, None where it is not known.
    """

    target: Target
    reached: float
    median: float
    binds: bool
    budget_per_unit: float | None

    @property
    def is_met(self) -> bool:
        return self.reached <= float(self.target.within) * (1 + _MET)

    @property
    def is_tied(self) -> bool:
        """Whether it can be relaxed only together with others."""
        return self.binds and self.budget_per_unit == 0


class Forecast(Protocol):
    """Variances of what targets ask for, as functions of the budgets of all slots.

    Cells and areas that are alike are one entry.
    """

    @property
    def kind(self) -> str: ...

    @property
    def n_slots(self) -> int: ...

    def areas_of(self, target: Target) -> Ints:
        """How many published cells every entry stands for."""
        ...

    def variances(self, targets: Sequence[Target], budgets: Floats) -> list[Floats]:
        """For each target the variance of every entry; areas that are not published have none."""
        ...

    def slopes(
        self, targets: Sequence[Target], budgets: Floats, picked: Sequence[tuple[int, int]]
    ) -> Floats:
        """Derivatives by the logarithms of the budgets: a row for each target and entry picked."""
        ...


@dataclass(frozen=True, slots=True)
class LevelForecast:
    """Targets on levels of the tree that is measured."""

    model: VarianceModel

    @property
    def kind(self) -> str:
        return self.model.kind

    @property
    def n_slots(self) -> int:
        return len(self.model.slots)

    def areas_of(self, target: Target) -> Ints:
        assert target.level is not None
        areas = self.model.shape.published[target.level]
        return np.outer(areas, self.model.kinds(target.query).sizes).ravel()

    def variances(self, targets: Sequence[Target], budgets: Floats) -> list[Floats]:
        found = self.model.variances(budgets, [(_level(t), t.query) for t in targets])
        return [
            np.where(self.areas_of(target) > 0, variances.ravel(), 0.0)
            for target, variances in zip(targets, found, strict=True)
        ]

    def slopes(
        self, targets: Sequence[Target], budgets: Floats, picked: Sequence[tuple[int, int]]
    ) -> Floats:
        return self.model.slopes(budgets, [[self._load(targets[k], e)] for k, e in picked])[1]

    def _load(self, target: Target, entry: int) -> Load:
        """The variance of one entry: an area, and a kind of cell."""
        areas = self.model.shape.published[_level(target)].size
        kinds = len(self.model.kinds(target.query).sizes)
        area, kind = divmod(entry, kinds)
        return Load(_level(target), target.query, np.eye(1, areas, area)[0], np.eye(kinds)[kind])


def _level(target: Target) -> int:
    assert target.level is not None
    return target.level


def least_budgets(forecast: Forecast, targets: Sequence[Target]) -> Floats:
    """The budgets of all slots with the least sum that meets every target."""
    problem = _Problem(forecast, targets)
    begin = promising(
        starts(forecast.kind, forecast.n_slots),
        lambda y: np.log(np.exp(y).sum()) + problem.scale(y),
    )
    return min(map(problem.solve, in_parts(begin)), key=lambda found: found.sum())


def least_total(forecast: Forecast, targets: Sequence[Target], shares: Floats) -> float:
    """The least budget that meets every target when the shares are given."""
    problem = _Problem(forecast, targets)
    return exp(problem.scale(np.log(shares)))


def how_far_met(forecast: Forecast, targets: Sequence[Target], budgets: Floats) -> list[Met]:
    """What every target reaches with these budgets, and what it costs at the margin."""
    found = forecast.variances(targets, budgets)
    cost = _Problem(forecast, targets).margins(np.log(budgets))
    lines = []
    for k, (target, variances) in enumerate(zip(targets, found, strict=True)):
        widths = np.sqrt(variances) * target.factor(forecast.kind)
        half = median(widths, forecast.areas_of(target))
        binds, saved = bool(cost.binds[k]), float(cost.alone[k])
        lines.append(Met(target, float(widths.max()), half, binds, saved))
    return lines


class _Problem:
    """Logarithms of variances over their limits, as functions of log budgets."""

    def __init__(self, forecast: Forecast, targets: Sequence[Target]) -> None:
        self.forecast, self.targets = forecast, targets
        self.limits = [target.most_variance(forecast.kind) for target in targets]
        self._ratios = lru_cache(4)(self._ratios_once)

    def _ratios_once(self, key: bytes) -> list[Floats]:
        found = self.forecast.variances(self.targets, np.exp(np.frombuffer(key)))
        return [v / limit for v, limit in zip(found, self.limits, strict=True)]

    def ratios(self, log_budgets: Floats) -> list[Floats]:
        """For every target, variance over limit of every entry."""
        return self._ratios(log_budgets.tobytes())

    def log_ratios(self, log_budgets: Floats, picked: Sequence[tuple[int, int]]) -> Floats:
        ratios = self.ratios(log_budgets)
        return np.log([max(ratios[k][entry], _LEAST_RATIO) for k, entry in picked])

    def log_slopes(self, log_budgets: Floats, picked: Sequence[tuple[int, int]]) -> Floats:
        """Derivatives of `log_ratios` by log budgets, a row for each entry."""
        slopes = self.forecast.slopes(self.targets, np.exp(log_budgets), picked)
        limits = np.array([self.limits[k] for k, _ in picked])
        return slopes / (limits * np.exp(self.log_ratios(log_budgets, picked)))[:, np.newaxis]

    def worst(self, log_budgets: Floats) -> list[tuple[float, int]]:
        """For every target the largest log ratio and its entry."""
        ratios = self.ratios(log_budgets)
        return [(float(np.log(max(r.max(), _LEAST_RATIO))), int(r.argmax())) for r in ratios]

    def scale(self, log_budgets: Floats) -> float:
        """The log factor by which all budgets must grow so that the targets are just met."""
        return falling_root(
            lambda shift: max(ratio for ratio, _ in self.worst(log_budgets + shift)), 0.0
        )

    def solve(self, start: Floats) -> Floats:
        """Budgets with the least sum, from a start of any size."""
        start = np.exp(start + self.scale(start))
        active: list[tuple[int, int]] = []
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

    def _solve_for(self, active: list[tuple[int, int]], start: Floats) -> Floats:
        """Meet the targets for these entries alone.

        The precision of an estimate is concave in the precisions of what is measured, so its
        logarithm, log limit - log variance >= 0, makes a convex constraint.
        """

        def values(z: Floats) -> Floats:
            return -self.log_ratios(np.log(z * start), active)

        def jacobian(z: Floats) -> Floats:
            return -self.log_slopes(np.log(z * start), active) / z

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

    def margins(self, log_budgets: Floats) -> Margins:
        """What every target costs; nothing where the budget is not the least that meets them."""
        n_targets, worst = len(self.targets), self.worst(log_budgets)
        highest = max(ratio for ratio, _ in worst)
        if abs(highest) > _NEAR:
            return Margins.none(n_targets)
        picked = [(k, entry) for k, (_, entry) in enumerate(worst)]
        room = self._rounding(log_budgets, picked)
        first = max(range(n_targets), key=lambda k: worst[k][0])
        near = [k for k in range(n_targets) if worst[k][0] + room[k] + room[first] >= highest]
        binding = [(k, entry) for k in near for entry in self._worst_entries(log_budgets, k)]
        return margins(
            np.exp(log_budgets),
            -self.log_slopes(log_budgets, binding),
            np.array([k for k, _ in binding]),
            np.array([ratio > highest - _NEAR for ratio, _ in worst]),
            # the variance that is allowed goes with the square of within
            np.array([2 / float(target.within) for target in self.targets]),
        )

    def _rounding(self, log_budgets: Floats, picked: Sequence[tuple[int, int]]) -> Floats:
        """How far log ratios can have moved because shares were rounded.

        What is met with the least share that there is does not bind: it cannot have less.
        """
        budgets = np.exp(log_budgets)
        units = DENOMINATOR * budgets / budgets.sum()
        moved = np.where(units > 1.5, 1 / units, 0.0)
        return _NEAR - self.log_slopes(log_budgets, picked) @ moved

    def _worst_entries(self, log_budgets: Floats, k: int) -> list[int]:
        """The worst entries of a target; of alike ones, one."""
        ratios = np.log(np.maximum(self.ratios(log_budgets)[k], _LEAST_RATIO))
        near = np.flatnonzero(ratios > ratios.max() - _NEAR)
        different, first = np.unique(ratios[near], return_index=True)
        return near[first[np.argsort(-different)][:_MOST_BINDING]].tolist()
