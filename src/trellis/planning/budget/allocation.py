r"""Shares of a budget from the counts of an earlier release.

Level l gets the budget x_l; each of its counts gets noise of parameter u / x_l and is clipped at
zero. With E_l(x) the sum of the mean squared errors of the level's counts (`clipped`),

    (6)   minimise  sum_l w_l E_l(x_l)   over   sum_l x_l <= total,
    (7)   minimise  sum_l x_l            over   sum_l w_l E_l(x_l) <= tau.

Each E_l is convex and falls, so both are solved by one multiplier: every level spends until
-w_l E_l'(x_l) = lambda, and lambda is the root of a monotone function. A level enters through the
histogram of its counts, since equal counts err equally.

For Laplace noise x is epsilon and u the L1 sensitivity; for Gaussian noise x is rho and u half the
squared L2 sensitivity. The numbers (6) and (7) are those of Ko, Ziani and Fioretto, "Optimal
allocation of privacy budget on hierarchical data release".

Counts must be public: an earlier release, a forecast, a declared guess. Shares that were computed
from confidential counts would themselves reveal something about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import InputError
from trellis.planning.budget.clipped import clipped_mse, clipped_mse_slope, whole_counts
from trellis.planning.budget.roots import falling_root

Floats = NDArray[np.float64]

_SMALL = 1 << 16
"""Counts below it are tallied without sorting."""
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class LevelCounts:
    """The counts of one level as a histogram: distinct values and how many areas have them."""

    values: Floats
    areas: Floats

    @classmethod
    def of(cls, counts: ArrayLike) -> LevelCounts:
        given = np.asarray(counts).ravel()
        if given.dtype.kind not in "iu":
            given = whole_counts(given).astype(np.int64)
        if given.size and given.min() < 0:
            raise InputError("Counts must be whole numbers of at least zero.")
        is_small = given.size == 0 or given.max() < _SMALL
        small = given if is_small else given[given < _SMALL]
        tally = np.bincount(small.astype(np.intp, copy=False))
        values = np.flatnonzero(tally)
        large, repeats = np.unique([] if is_small else given[given >= _SMALL], return_counts=True)
        return cls(
            np.concatenate([values, large]).astype(np.float64),
            np.concatenate([tally[values], repeats]).astype(np.float64),
        )

    @property
    def size(self) -> float:
        return float(self.areas.sum())


@dataclass(frozen=True, slots=True, eq=False)
class ClippedErrors:
    """The weighted error of every level as a function of its budget."""

    kind: str
    unit: float
    levels: tuple[LevelCounts, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(
        cls,
        kind: str,
        unit: float,
        level_counts: Sequence[ArrayLike],
        weights: Sequence[float] | None,
    ) -> ClippedErrors:
        levels = tuple(LevelCounts.of(counts) for counts in level_counts)
        given = np.ones(len(levels)) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != (len(levels),):
            raise InputError(f"{given.size} weights for {len(levels)} levels: give one per level.")
        if not (np.isfinite(given) & (given >= 0)).all():
            raise InputError("Weights of levels must be numbers of at least zero.")
        errors = cls(kind, unit, levels, tuple(given.tolist()))
        if not errors.active:
            raise InputError("Every level is empty or has weight 0: there is nothing to optimise.")
        return errors

    @property
    def active(self) -> list[int]:
        """Levels that have counts and weigh something; the others get nothing."""
        return [i for i, level in enumerate(self.levels) if level.size and self.weights[i]]

    def mse(self, level: int, budget: float) -> float:
        """The weighted sum of mean squared errors of one level."""
        counts = self.levels[level]
        errors = clipped_mse(self.kind, self.unit / budget, counts.values)
        return self.weights[level] * float(errors @ counts.areas)

    def total(self, budgets: Sequence[float] | Floats) -> float:
        """The weighted sum over the levels that count."""
        return sum(self.mse(level, float(budgets[level])) for level in self.active)

    def _log_gain(self, level: int, log_budget: float) -> float:
        """The logarithm of -w_l E_l'(x); falls as the budget x grows."""
        counts, parameter = self.levels[level], self.unit * exp(-log_budget)
        slope = float(clipped_mse_slope(self.kind, parameter, counts.values) @ counts.areas)
        gain = self.weights[level] * slope * self.unit
        return log(max(gain, _LEAST)) - 2 * log_budget

    def budgets_at(self, log_multiplier: float, guess: Floats) -> Floats:
        """The logarithm of every active level's budget at a multiplier."""
        return np.array(
            [
                falling_root(
                    lambda y, level=level: self._log_gain(level, y) - log_multiplier, start
                )
                for level, start in zip(self.active, guess, strict=True)
            ]
        )

    def solve(self, surplus: Callable[[Floats], float]) -> Floats:
        """Budgets at the multiplier at which a function of the log budgets is 0.

        `surplus` grows with the budgets.
        """
        guess = np.zeros(len(self.active))
        start = float(np.median([self._log_gain(level, 0.0) for level in self.active]))

        def at(log_multiplier: float) -> float:
            nonlocal guess
            guess = self.budgets_at(log_multiplier, guess)
            return surplus(guess)

        log_multiplier = falling_root(at, start)
        budgets = np.zeros(len(self.levels))
        budgets[self.active] = np.exp(self.budgets_at(log_multiplier, guess))
        return budgets


def split_budget(
    kind: str,
    unit: float,
    level_counts: Sequence[ArrayLike],
    total: float,
    weights: Sequence[float] | None = None,
) -> Floats:
    """Program (6) for any of the four laws; `unit` / budget is the parameter of the noise."""
    _require_positive("The budget", total)
    errors = ClippedErrors.of(kind, unit, level_counts, weights)
    log_total = log(total)
    budgets = errors.solve(lambda y: float(np.logaddexp.reduce(y)) - log_total)
    return budgets * (total / budgets.sum())


def least_split(
    kind: str,
    unit: float,
    level_counts: Sequence[ArrayLike],
    tau: float,
    weights: Sequence[float] | None = None,
) -> Floats:
    """Program (7) for any of the four laws."""
    _require_positive("The error tau", tau)
    errors = ClippedErrors.of(kind, unit, level_counts, weights)

    def surplus(log_budgets: Floats) -> float:
        pairs = zip(errors.active, np.exp(log_budgets), strict=True)
        reached = sum(errors.mse(level, float(budget)) for level, budget in pairs)
        return log(tau) - log(max(reached, _LEAST))

    return errors.solve(surplus)


def allocate(
    level_counts: Sequence[ArrayLike],
    epsilon_total: float,
    weights: Sequence[float] | None = None,
) -> Floats:
    """Program (6): the epsilon of each level that minimises the weighted error of Laplace noise.

    `level_counts` holds one array of public counts per level. A level of weight 0 gets nothing.
    """
    return split_budget("laplace", 1.0, level_counts, float(epsilon_total), weights)


def least_budget(
    level_counts: Sequence[ArrayLike], tau: float, weights: Sequence[float] | None = None
) -> Floats:
    """Program (7): the epsilon of each level with the least sum whose weighted error is tau."""
    return least_split("laplace", 1.0, level_counts, float(tau), weights)


def _require_positive(what: str, value: float) -> None:
    if not 0 < value < inf:
        raise InputError(f"{what} must be a positive number; {value:g} is not.")
