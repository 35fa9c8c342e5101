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

from trellis.model.queries import Query
from trellis.planning.expected_variance import VarianceModel
from trellis.planning.spine_shape import Numbers

Floats = NDArray[np.float64]

Error = Callable[[Floats], tuple[float, Floats]]
"""An error as a function of budgets, and its derivatives by their logarithms."""

_MOST_STARTS = 4
_MOST_SUBSETS = 6
"""Up to this many slots, every choice of slots is a start of its own."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The summed squared error of one query on one level, times a weight."""

    level: int
    query: Query
    weight: float


def weighted_error(model: VarianceModel, aims: Sequence[Aim], solved: list[list[Numbers]]) -> float:
    """The weighted sum over all areas and cells of the variances (or of their derivatives)."""
    total = 0.0
    for aim in aims:
        areas = model.shape.published[aim.level] * aim.query.n_cells
        total += aim.weight * float(model.of_query(solved, aim.level, aim.query) @ areas)
    return total


def optimal_budgets(model: VarianceModel, aims: Sequence[Aim], total: float) -> Floats:
    """The budget of every slot, summing to `total`, with the least weighted error."""

    def error(budgets: Floats) -> tuple[float, Floats]:
        solved, slopes = model.derivatives(budgets)
        by_slot = np.array([weighted_error(model, aims, slope) for slope in slopes])
        return weighted_error(model, aims, solved), by_slot

    return least_error(error, model.kind, len(model.slots), total)


def least_error(error: Error, kind: str, n_slots: int, total: float) -> Floats:
    """Budgets of `n_slots` slots that sum to `total` and have the least error."""

    def objective(log_shares: Floats) -> tuple[float, Floats]:
        shares = softmax(log_shares)
        found, slopes = error(shares * total)
        gains = slopes / found
        return np.log(found), gains - shares * gains.sum()

    begin = promising(starts(kind, n_slots), lambda x: objective(x)[0])
    return total * softmax(_least(objective, begin))


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
    ends = [minimize(objective, x, jac=True, method="BFGS", options={"gtol": 1e-9}) for x in begin]
    return min(ends, key=lambda end: end.fun).x


def softmax(x: Floats) -> Floats:
    weights = np.exp(x - x.max())
    return weights / weights.sum()
