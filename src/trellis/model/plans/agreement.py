"""Nothing is charged unless noise, price and budget agree: one check, for every kind of release."""

from __future__ import annotations

from fractions import Fraction

from trellis.errors import PrivacyError
from trellis.model.plans.plan import Plan
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import DiscreteLaplace, mechanism

NEXT_TO_NOTHING = Fraction(1, 100)
"""How much less noise must break an (epsilon, delta) budget; calibration finds six digits."""


def agreed_cost(plan: Plan) -> Guarantee:
    """What the ledger is charged for a plan, after checking that it is what the budget buys.

    With a budget of rho or of pure epsilon, each query costs its share of the budget, exactly.
    With (epsilon, delta), prices are in the ratio of the shares, the release keeps the budget,
    and with a hundredth less noise it would not.
    """
    cost = plan.privacy
    shares = [query.share for query in plan.queries if query.noise is not None]
    if not shares or not _fits(cost, shares, plan.budget):
        raise PrivacyError(
            "The noise of this plan does not cost what the budget says. Nothing was charged. This "
            "is a bug in Trellis: please report it with the spec."
        )
    return cost


def _fits(cost: Guarantee, shares: list[Fraction], budget: Budget) -> bool:
    if budget.is_pure:
        prices = [_pure_epsilon_of(cost, charge) for charge in cost.charges]
        total, whole = cost.pure_epsilon, budget.epsilon
    else:
        prices = [cost.rho_of(charge) for charge in cost.charges]
        total, whole = cost.rho, cost.rho if budget.rho is None else budget.rho
    assert whole is not None
    fair = all(price == whole * share for price, share in zip(prices, shares, strict=True))
    return fair and total == whole and (budget.delta is None or _keeps_closely(cost, budget))


def _pure_epsilon_of(cost: Guarantee, charge: Charge) -> Fraction | None:
    noise = charge.mechanism
    return noise.epsilon(cost.change(charge).l1) if isinstance(noise, DiscreteLaplace) else None


def _keeps_closely(cost: Guarantee, budget: Budget) -> bool:
    assert budget.epsilon is not None
    assert budget.delta is not None
    quieter = Guarantee(
        cost.protection,
        tuple(
            Charge(c.label, mechanism(c.mechanism.name, _less(c.mechanism.parameter)), c.table)
            for c in cost.charges
        ),
        cost.paths,
    )
    kept = cost.accountant.delta(budget.epsilon) <= budget.delta
    return kept and quieter.accountant.delta(budget.epsilon) > budget.delta


def _less(parameter: Fraction) -> Fraction:
    return parameter * (1 - NEXT_TO_NOTHING)
