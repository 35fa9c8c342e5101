"""Shares that minimise the expected error of the estimates, without any count.

For Gaussian noise the precision of a measurement is proportional to its share, and the variances
are convex in the shares. For Laplace noise they need not be, so several starts are tried. The
search runs over logarithms, where a share never leaves the positive numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from trellis.execution.progress import in_parts
from trellis.model.tables.queries import Query
from trellis.planning.forecast.expected_variance import Load, VarianceModel

Floats = NDArray[np.float64]

Error = Callable[[Floats], tuple[float, Floats]]
"""An error as a function of budgets, and its derivatives by their logarithms."""

_MOST_STARTS = 4
_MOST_SUBSETS = 6
"""Up to this many slots, every choice of slots is a start of its own."""
_REVIVED = (1e-3, 1e-4, 1e-5, 1e-3, 1e-4, 1e-5)
"""On logarithms a share that was made too small by far grows again slowly, so it is set again."""
_STARVED = 1e-5
_LEAST_WEIGHT = 1e-12
"""Relative to the largest; shares are rounded far more coarsely."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The summed squared error of one query on one level, times a weight."""

    level: int
    query: Query
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Shares that sum to a stated part in each group of slots, one group for all by default."""

    group: NDArray[np.int64]
    parts: Floats

    @classmethod
    def free(cls, n_slots: int) -> Split:
        return cls(np.zeros(n_slots, dtype=np.int64), np.ones(1))

    def shares(self, log_weights: Floats) -> Floats:
        weights = np.exp(log_weights - log_weights.max())
        weights = np.maximum(weights, _LEAST_WEIGHT)
        return self.parts[self.group] * weights / np.bincount(self.group, weights)[self.group]

    def slopes(self, shares: Floats, gains: Floats) -> Floats:
        """Derivatives by log weights from those by log shares."""
        within = shares / self.parts[self.group]
        return gains - within * np.bincount(self.group, gains)[self.group]

    def starved(self, shares: Floats, slopes: Floats) -> NDArray[np.bool_]:
        """Slots where a little more would help more than what their group has helps on average.

        If there are none and the error is convex, no other split has less.
        """
        gains = -slopes / shares
        mean = np.bincount(self.group, gains * shares) / self.parts
        return gains > mean[self.group] * (1 + _STARVED)


def weighted_error(model: VarianceModel, aims: Sequence[Aim], budgets: Floats) -> float:
    """The weighted sum over all areas and cells of the variances."""
    found = model.variances(budgets, [(aim.level, aim.query) for aim in aims])
    total = 0.0
    for aim, variances in zip(aims, found, strict=True):
        cells = variances @ model.kinds(aim.query).sizes
        total += aim.weight * float(model.shape.published[aim.level] @ cells)
    return total


def optimal_budgets(
    model: VarianceModel, aims: Sequence[Aim], total: float, split: Split | None = None
) -> Floats:
    """The budget of every slot, summing to `total`, with the least weighted error."""
    error = error_and_slopes(model, aims)
    return least_error(error, model.kind, split or Split.free(len(model.slots)), total)


def error_and_slopes(model: VarianceModel, aims: Sequence[Aim]) -> Error:
    """The weighted error as a function of budgets, with its derivatives by their logarithms."""
    loads = [_load(model, aim) for aim in aims]

    def error(budgets: Floats) -> tuple[float, Floats]:
        (found,), (slopes,) = model.slopes(budgets, [loads])
        return found, slopes

    return error


def _load(model: VarianceModel, aim: Aim) -> Load:
    areas = model.shape.published[aim.level].astype(np.float64)
    sizes = model.kinds(aim.query).sizes.astype(np.float64)
    return Load(aim.level, aim.query, aim.weight * areas, sizes)


def least_error(error: Error, kind: str, split: Split, total: float) -> Floats:
    """Budgets that sum to `total`, split like this, and have the least error."""

    def objective(log_weights: Floats) -> tuple[float, Floats]:
        shares = split.shares(log_weights)
        found, slopes = error(shares * total)
        return np.log(found), split.slopes(shares, slopes / found)

    begin = promising(starts(kind, split.group.size), lambda x: objective(x)[0])
    found = _least(objective, begin)
    for amount in _REVIVED if kind == "discrete_gaussian" else ():
        shares = split.shares(found)
        starved = split.starved(shares, error(shares * total)[1])
        if not starved.any():
            break
        again = _least(objective, [np.log(shares + amount * starved)])
        found = min(found, again, key=lambda x: objective(x)[0])
    return total * split.shares(found)


def starts(kind: str, n_slots: int) -> Iterator[Floats]:
    """Where to begin: equal budgets; for Laplace noise, also almost none for some of the slots.

    With Laplace noise precision grows with the square of the budget, so that it can pay to measure
    fewer levels well, and each choice of levels may have a least error of its own.
    """
    yield np.zeros(n_slots)
    if kind == "discrete_laplace" and n_slots <= _MOST_SUBSETS:
        for is_small in islice(product([False, True], repeat=n_slots), 1, None):
            if not all(is_small):
                yield np.where(is_small, -6.0, 0.0)


def promising(begin: Iterable[Floats], value: Callable[[Floats], float]) -> list[Floats]:
    """The starts with the least values."""
    return sorted(begin, key=value)[:_MOST_STARTS]


def _least(objective: Callable[[Floats], tuple[float, Floats]], begin: Sequence[Floats]) -> Floats:
    """The best end of descents from several starts."""
    # Precision that is lost is no failure: shares are rounded far more coarsely than that.
    ends = [
        minimize(objective, x, jac=True, method="BFGS", options={"gtol": 1e-9})
        for x in in_parts(begin)
    ]
    return min(ends, key=lambda end: end.fun).x
