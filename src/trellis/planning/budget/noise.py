"""From a total budget and shares to exact noise parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, log10

from trellis.privacy.accounting import calibrate
from trellis.privacy.accounting.zcdp import zcdp_rho
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION, Table
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from trellis.privacy.protection import Protection

_DIGITS = 6


def noise_for_shares(
    budget: Budget,
    shares: Mapping[str, Fraction],
    protection: Protection,
    table: Table = PARTITION,
) -> dict[str, Mechanism]:
    """One mechanism per share, such that together they cost no more than the budget.

    Pure DP:           scale   = L1 / (epsilon s)           for a share s.
    zCDP:              sigma^2 = squared L2 / (2 rho s).
    (epsilon, delta):  sigma^2 = noise / s, with the least noise that the exact accountant allows.
    """
    change = table.change(protection.neighbours, protection.max_contribution)
    if budget.is_pure:
        assert budget.epsilon is not None
        unit = change.l1 / budget.epsilon
        return {name: DiscreteLaplace(unit / share) for name, share in shares.items()}
    if budget.rho is not None:
        unit = Fraction(change.l2_squared) / (2 * budget.rho)
        return {name: DiscreteGaussian(unit / share) for name, share in shares.items()}
    assert budget.epsilon is not None
    assert budget.delta is not None
    if table != PARTITION:

        def gaussian(noise: Fraction) -> dict[str, Mechanism]:
            return {name: DiscreteGaussian(noise / share) for name, share in shares.items()}

        tables = dict.fromkeys(shares, table)
        return gaussian(
            least_noise(
                budget.epsilon, budget.delta, gaussian, protection, tables, change.l2_squared
            )
        )
    calibration = calibrate(
        budget.epsilon,
        budget.delta,
        [list(shares.values())],
        protection.neighbours,
        protection.max_contribution,
    )
    return {name: calibration.mechanism(share) for name, share in shares.items()}


def noise_for_paths(
    budget: Budget, paths: Sequence[Sequence[Fraction]], protection: Protection
) -> dict[Fraction, Mechanism]:
    """One mechanism for each share that occurs, if what a record meets depends on its path.

    As `noise_for_shares`; with (epsilon, delta), the worst pair of paths keeps them.
    """
    positive = [[share for share in path if share] for path in paths]
    shares = {str(share): share for path in positive for share in path}
    if budget.delta is None:
        noise = noise_for_shares(budget, shares, protection)
        return {share: noise[name] for name, share in shares.items()}
    assert budget.epsilon is not None
    calibration = calibrate(
        budget.epsilon,
        budget.delta,
        positive,
        protection.neighbours,
        protection.max_contribution,
    )
    return {share: calibration.mechanism(share) for share in shares.values()}


def least_noise(
    epsilon: Fraction,
    delta: Fraction,
    mechanisms: Callable[[Fraction], Mapping[str, Mechanism]],
    protection: Protection,
    tables: Mapping[str, Table],
    l2_squared: int,
) -> Fraction:
    """The least noise, to six digits, found by halving below what zCDP asks for.

    `mechanisms` gives the noise of each table; with noise n they cost rho = `l2_squared` / (2 n).

    Changes such as (1, -2, 1) are beyond `calibrate`, whose cells all move equally far. Whatever
    the search assumes, what it returns was seen to keep (epsilon, delta).
    """

    def holds(noise: Fraction) -> bool:
        charges = tuple(
            Charge(name, mechanism, tables[name]) for name, mechanism in mechanisms(noise).items()
        )
        return Guarantee(protection, charges).accountant.delta(epsilon) <= delta

    enough = Fraction(l2_squared) / Fraction(2 * zcdp_rho(float(epsilon), float(delta)))
    digit = Fraction(10) ** (floor(log10(enough)) - _DIGITS + 1)
    high = ceil(enough / digit)
    while not holds(high * digit):  # the floats of zcdp_rho may have been rounded down
        high += 1
    low = 0
    while True:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle * digit) else (middle, high)
        if high >= 10 ** (_DIGITS - 1):
            return high * digit
        # Far less than zCDP asks for is enough, as with a large delta: one digit more.
        low, high, digit = 10 * low, 10 * high, digit / 10
