"""Noise, price and budget agree, or nothing is charged; names play no part (findings P1)."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import trellis
from flow_worlds import flows_plan, tree_of
from histogram_release_worlds import (
    SPEC,
    TREE,
    histogram_plan,
    problems,
    shares,
    write_histogram_world,
)
from size_worlds import sizes_plan
from trellis.errors import BudgetExceeded, PrivacyError
from trellis.model import Plan, Schema
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.ledger import Ledger
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.storage.plans import plan_from_json, plan_to_json
from worlds import plan_for

NAMES = [*FlowQuery, *SizeQuery]
"""Queries of other kinds of release, as names of attributes."""


def named_after(name: str, budget: Budget) -> Plan:
    """Almost all of the budget on an attribute with this name."""
    schema = Schema({name: ["no", "yes"], "sex": ["f", "m"]})
    strategy = shares({"default": {name: "99/100", "detailed": "1/100"}})
    return histogram_plan(TREE, schema, ordered=(), strategy=strategy, budget=budget)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_an_attribute_does_not_decide_a_price(name):
    plan = named_after(name, Budget(rho=Fraction(9, 10)))
    assert all(query.table == PARTITION for query in plan.queries)
    assert plan.privacy.rho == Fraction(9, 10)
    assert plan.width(name) == 2
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan


def test_epsilon_and_delta_are_those_of_the_noise_whatever_its_name():
    plan = named_after("grand_total", Budget(epsilon=Fraction(2), delta=Fraction(1, 10**6)))
    other = named_after("household", Budget(epsilon=Fraction(2), delta=Fraction(1, 10**6)))
    assert plan.privacy.epsilon(1e-6) == other.privacy.epsilon(1e-6)
    assert 1.99 < plan.privacy.epsilon(1e-6) <= 2


def test_two_releases_with_such_a_name_do_not_pass_one_limit(tmp_path):
    """Each costs 9/10; by its name it was charged 909/2000, and two passed a limit of 1."""
    people = "town,grand_total,sex\na1,no,f\nb1,yes,m\nc,no,m\n"
    changes = {
        "schema": {"grand_total": ["no", "yes"], "sex": ["f", "m"]},
        "recodes": {},
        "strategy": {"default": {"grand_total": "99/100", "detailed": "1/100"}},
        "data": {"source": "people.csv", "area": "town"},
        "privacy": {**SPEC["privacy"], "budget": {"rho": "9/10"}},
        "ledger": {"limit": {"rho": 1}},
        "output": {"tables": {"default": ["grand_total"]}},
    }
    spec = write_histogram_world(tmp_path, people, **changes)
    run = trellis.run(trellis.Spec.load(spec))
    record = json.loads((run.path / "privacy.json").read_text(encoding="utf-8"))
    assert record["rho"] == "9/10"
    assert problems(run.path) == {}
    [entry] = Ledger(tmp_path / "ledger.sqlite").entries("towns")
    assert entry.guarantee.rho == Fraction(9, 10)
    with pytest.raises(BudgetExceeded):
        trellis.run(trellis.Spec.load(spec), tmp_path / "runs" / "again")


def test_verification_does_not_believe_a_price_that_the_kind_does_not_have(tmp_path):
    spec = write_histogram_world(tmp_path)
    run = trellis.run(trellis.Spec.load(spec)).path
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    plan["queries"][-1] |= {"table": "grand_total", "trips": 1}
    (run / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert any("another kind" in text for found in problems(run).values() for text in found)


PLANS = {
    "counts": plan_for(),
    "histograms": histogram_plan(),
    "sizes": sizes_plan(),
    "flows": flows_plan(tree_of()),
    "pure": plan_for(budget=Budget(epsilon=Fraction(1))),
    "approximate": plan_for(budget=Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6))),
}


@pytest.mark.parametrize("kind", PLANS)
def test_every_plan_costs_what_its_budget_says(kind):
    assert agreed_cost(PLANS[kind]) == PLANS[kind].privacy


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)])
def test_noise_of_another_price_is_never_charged(kind, factor):
    plan = PLANS[kind]
    noise = [q.noise for q in plan.queries]
    scaled = tuple(
        q if n is None else replace(q, noise=type(n)(n.parameter * factor))
        for q, n in zip(plan.queries, noise, strict=True)
    )
    with pytest.raises(PrivacyError, match="does not cost what the budget says"):
        agreed_cost(replace(plan, queries=scaled))


def test_noise_that_does_not_fit_its_share_is_never_charged():
    """The sum is right, and one level has taken from another."""
    plan = histogram_plan(strategy=shares({"default": {"detailed": "1"}}))
    first, second, *rest = (q for q in plan.queries if q.noise is not None)
    taken = replace(first, noise=DiscreteGaussian(2 * first.noise.parameter))
    given = replace(second, noise=DiscreteGaussian(Fraction(2, 3) * second.noise.parameter))
    exact = [q for q in plan.queries if q.noise is None]
    moved = replace(plan, queries=(*exact, taken, given, *rest))
    assert moved.privacy.rho == plan.privacy.rho
    with pytest.raises(PrivacyError, match="does not cost what the budget says"):
        agreed_cost(moved)


def test_a_price_too_low_is_never_charged():
    plan = flows_plan(tree_of())
    wrong = [replace(q, table=FlowTable(FlowQuery.GRAND_TOTAL)) for q in plan.queries]
    if wrong == list(plan.queries):
        pytest.fail("the mutation changes nothing")
    with pytest.raises(PrivacyError, match="does not cost what the budget says"):
        agreed_cost(replace(plan, queries=tuple(wrong)))
