"""Privacy contract: noise, price and budget agree, and a price stays what it is when it is kept.

For every kind of release and every plan of its world: the ledger is charged what the budget buys,
less noise is refused, and plans and ledgers read back what they wrote.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from kinds import WITH_TOYS
from kinds.flows import FlowsCase
from trellis.errors import PrivacyError
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION, Change
from trellis.privacy.guarantee import Charge
from trellis.privacy.ledger.entries import guarantee_from_json, guarantee_to_json
from trellis.privacy.neighbours import Neighbours
from trellis.storage.plans import plan_from_json, plan_to_json, query_to_json

CASES = [(kind, case) for kind, world in WITH_TOYS.items() for case in world.cases()]


@pytest.fixture
def world(request, monkeypatch):
    """A kind that the package does not have is entered for the test."""
    WITH_TOYS[request.param].register(monkeypatch)
    return WITH_TOYS[request.param]


EVERY_CASE = pytest.mark.parametrize(("world", "case"), CASES, indirect=["world"], ids=str)


def quieter(plan, factor):
    """Another plan: every query with less noise, at the price that it was."""
    noisy = [
        q if q.noise is None else replace(q, noise=less(q.noise, factor)) for q in plan.queries
    ]
    return replace(plan, queries=tuple(noisy))


def less(noise, factor):
    return type(noise)(noise.parameter * factor)


@EVERY_CASE
def test_a_release_costs_its_budget(world, case):
    plan = case.plan()
    cost = agreed_cost(plan)
    assert cost == plan.privacy
    stated = cost.pure_epsilon if plan.budget.is_pure else cost.rho
    assert stated == (plan.budget.epsilon if plan.budget.is_pure else plan.budget.rho)
    for factor in (Fraction(99, 100), Fraction(101, 100)):
        with pytest.raises(PrivacyError, match="Nothing was charged"):
            agreed_cost(quieter(plan, factor))


@EVERY_CASE
def test_one_query_with_less_noise_is_refused(world, case):
    plan = case.plan()
    last = plan.queries[-1]
    cheap = replace(
        plan, queries=(*plan.queries[:-1], replace(last, noise=less(last.noise, Fraction(1, 2))))
    )
    with pytest.raises(PrivacyError, match="Nothing was charged"):
        agreed_cost(cheap)
    if not plan.budget.is_pure:
        assert cheap.privacy.rho > plan.privacy.rho  # the ledger would see it


@EVERY_CASE
def test_what_is_written_is_read(world, case):
    plan = case.plan()
    again = plan_from_json(plan_to_json(plan))
    assert again == plan
    assert again.privacy == plan.privacy
    assert guarantee_from_json(guarantee_to_json(plan.privacy)) == plan.privacy


class Cheap:
    """A table that no plan or ledger has a form for."""

    def change(self, neighbours, max_contribution):
        return Change(((100, 1),), merged=None)


def test_a_price_that_cannot_be_kept_is_refused():
    """Read back as a partition, it would cost a ten thousandth."""
    plan = WITH_TOYS["counts"].cases()[0].plan()
    dear = replace(plan.privacy, charges=(Charge("x", plan.queries[-1].noise, Cheap()),))
    with pytest.raises(PrivacyError, match="cannot be written down"):
        guarantee_to_json(dear)
    with pytest.raises(PrivacyError, match="cannot be written down"):
        query_to_json(replace(plan.queries[-1], table=Cheap()))


def test_a_price_that_is_not_known_is_not_read():
    text = guarantee_to_json(WITH_TOYS["group_sizes"].cases()[0].plan().privacy)
    with pytest.raises(PrivacyError, match="no table 'odd'"):
        guarantee_from_json(text.replace("histogram", "odd"))


def test_prices_of_kinds_differ():
    tables = {c.table for _, case in CASES for c in case.plan().privacy.charges}
    assert len(tables - {PARTITION}) >= 6


@pytest.mark.parametrize("epsilon", ["1/10", 1])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("exactly", [True, False])
def test_calibrated_noise_of_flows_keeps_the_budget_with_mixed_tables(epsilon, distinct, exactly):
    budget = Budget(epsilon=Fraction(epsilon), delta=Fraction(1, 10**8))
    plan = FlowsCase("destination", Neighbours.REPLACE, 2, exactly, distinct, budget).plan()
    assert plan.privacy.accountant.delta(budget.epsilon) <= budget.delta
    fewer = tuple(
        replace(c, mechanism=less(c.mechanism, Fraction(99, 100))) for c in plan.privacy.charges
    )
    assert replace(plan.privacy, charges=fewer).accountant.delta(budget.epsilon) > budget.delta
