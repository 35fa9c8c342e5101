"""From a total budget and shares to exact noise parameters."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from trellis.privacy.accounting import calibrate
from trellis.privacy.budget import Budget
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from trellis.privacy.protection import Protection


def noise_for_shares(
    budget: Budget, shares: Mapping[str, Fraction], protection: Protection
) -> dict[str, Mechanism]:
    """One mechanism per share, such that together they cost no more than the budget.

    Pure DP:           scale   = L1 / (epsilon s)           for a share s.
    zCDP:              sigma^2 = squared L2 / (2 rho s).
    (epsilon, delta):  sigma^2 = noise / s, with the least noise that the exact accountant allows.
    """
    if budget.is_pure:
        assert budget.epsilon is not None
        unit = protection.l1 / budget.epsilon
        return {name: DiscreteLaplace(unit / share) for name, share in shares.items()}
    if budget.rho is not None:
        unit = Fraction(protection.l2_squared) / (2 * budget.rho)
        return {name: DiscreteGaussian(unit / share) for name, share in shares.items()}
    assert budget.epsilon is not None
    assert budget.delta is not None
    calibration = calibrate(
        budget.epsilon,
        budget.delta,
        [list(shares.values())],
        protection.neighbours,
        protection.max_contribution,
    )
    return {name: calibration.mechanism(share) for name, share in shares.items()}
