"""What neighbouring data sets cost, found by force: the same for every kind of release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trellis.model.plans.plan import Plan
from trellis.privacy.mechanisms import DiscreteLaplace


def worst_cost(
    plan: Plan, pairs: Iterable[tuple[Any, Any]], measured: Callable[[Any], Sequence[np.ndarray]]
) -> Fraction:
    """The most that a pair costs; each of its tables moves no further than it was charged for.

    `measured` gives the true answers to the planned queries, in their order.
    """
    guarantee, worst = plan.privacy, Fraction(0)
    charged = {charge.label: guarantee.change(charge) for charge in guarantee.charges}
    for left, right in pairs:
        cost = Fraction(0)
        for query, a, b in zip(plan.queries, measured(left), measured(right), strict=True):
            moved = np.abs(a - b).ravel()
            if query.noise is None:
                assert not moved.any(), f"{query.label} is exact and moves"
                continue
            l1, l2_squared = int(moved.sum()), int((moved**2).sum())
            assert l1 <= charged[query.label].l1
            assert l2_squared <= charged[query.label].l2_squared
            is_pure = isinstance(query.noise, DiscreteLaplace)
            cost += query.noise.epsilon(l1) if is_pure else query.noise.rho(l2_squared)
        worst = max(worst, cost)
    return worst


def stated_cost(plan: Plan) -> Fraction:
    pure = plan.privacy.pure_epsilon
    return plan.privacy.rho if pure is None else pure
