"""Noise for tables that one unit moves by different distances."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from trellis.planning.budget.noise import least_noise, noise_for_shares
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION, Change, Table
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from trellis.privacy.protection import Protection


def noise_for_tables(
    budget: Budget,
    shares: Mapping[str, Fraction],
    protection: Protection,
    tables: Mapping[str, Table],
) -> dict[str, Mechanism]:
    """One mechanism per share and table, such that each costs its share of the budget.

    Pure DP:           scale   = L1 / (epsilon s)           for a share s.
    zCDP:              sigma^2 = squared L2 / (2 rho s).
    (epsilon, delta):  sigma^2 = squared L2 noise / s, with the least noise that holds.
    """
    changes = {name: _change(tables[name], protection) for name in shares}
    whole = _change(PARTITION, protection)
    if all(change.moves == whole.moves for change in changes.values()):
        return noise_for_shares(budget, shares, protection)
    if budget.is_pure:
        assert budget.epsilon is not None
        return {
            name: DiscreteLaplace(changes[name].l1 / (budget.epsilon * share))
            for name, share in shares.items()
        }

    def gaussian(noise: Fraction) -> dict[str, Mechanism]:
        return {
            name: DiscreteGaussian(changes[name].l2_squared * noise / share)
            for name, share in shares.items()
        }

    if budget.rho is not None:
        return gaussian(1 / (2 * budget.rho))
    assert budget.epsilon is not None
    assert budget.delta is not None
    return gaussian(least_noise(budget.epsilon, budget.delta, gaussian, protection, tables, 1))


def _change(table: Table, protection: Protection) -> Change:
    return table.change(protection.neighbours, protection.max_contribution)
