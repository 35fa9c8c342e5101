"""From a total budget and shares to exact noise parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import zcdp_epsilon
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from trellis.privacy.protection import Protection


def noise_for_shares(
    budget: Budget, shares: Mapping[str, Fraction], protection: Protection
) -> dict[str, Mechanism]:
    """One mechanism per share, such that together they cost no more than the budget.

    Pure DP:  scale   = L1 / (epsilon s)           for a share s.
    zCDP:     sigma^2 = squared L2 / (2 rho s).
    """
    if budget.is_pure:
        assert budget.epsilon is not None
        unit = protection.l1 / budget.epsilon
        return {name: DiscreteLaplace(unit / share) for name, share in shares.items()}
    rho = budget.rho if budget.rho is not None else _rho_within(budget)
    unit = Fraction(protection.l2_squared) / (2 * rho)
    return {name: DiscreteGaussian(unit / share) for name, share in shares.items()}


def _rho_within(budget: Budget) -> Fraction:
    """A rho, at most 1e-9 below the largest, whose (epsilon, delta) lies within the budget."""
    assert budget.epsilon is not None
    assert budget.delta is not None
    epsilon, log_term = float(budget.epsilon), math.log(1 / budget.delta)
    root = math.sqrt(log_term + epsilon) - math.sqrt(log_term)
    rho = Fraction(math.floor(root**2 * (1 - 1e-9) * 10**12), 10**12)
    assert zcdp_epsilon(rho, float(budget.delta)) <= epsilon
    return rho
