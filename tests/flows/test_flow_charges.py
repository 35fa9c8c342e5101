"""Prices of the tables of flows, in the plan and in the ledger."""

import pytest

from flow_worlds import MODES, flows_plan, tree_of
from trellis.errors import PrivacyError
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.ledger.entries import guarantee_from_json, guarantee_to_json
from trellis.privacy.neighbours import Neighbours
from trellis.storage.plans import plan_from_json, plan_to_json

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@pytest.mark.parametrize(("query", "relation", "l1", "l2_squared"), [
    (FlowQuery.PAIRS, ADD, 3, 9),
    (FlowQuery.PAIRS, REPLACE, 6, 18),
    (FlowQuery.DISTINCT_PAIRS, ADD, 3, 3),
    (FlowQuery.DISTINCT_PAIRS, REPLACE, 6, 6),
    (FlowQuery.GRAND_TOTAL, ADD, 3, 9),
    (FlowQuery.GRAND_TOTAL, REPLACE, 3, 9),
])  # fmt: skip
def test_changes_of_three_trips(query, relation, l1, l2_squared):
    change = FlowTable(query, 3).change(relation, 3)
    assert (change.l1, change.l2_squared) == (l1, l2_squared)


def test_trips_of_different_people_may_coincide():
    """A household of two people with three distinct trips each: three cells move by two."""
    change = FlowTable(FlowQuery.DISTINCT_PAIRS, 3).change(ADD, 6)
    assert change.moves == ((2, 3),)


@pytest.mark.parametrize("trips", [0, True, 1.5])
def test_a_bound_that_is_none_is_refused(trips):
    with pytest.raises(PrivacyError, match="trips"):
        FlowTable(FlowQuery.PAIRS, trips)


@pytest.mark.parametrize("changes", [
    {}, {"neighbours": ADD}, {"max_contribution": 3, "exactly": False, "distinct": True},
], ids=str)  # fmt: skip
def test_plans_and_guarantees_survive_being_written(changes):
    plan = flows_plan(tree_of(schema=MODES), MODES, **changes)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert guarantee_from_json(guarantee_to_json(plan.privacy)) == plan.privacy


def test_levels_are_charged_as_the_relation_asks():
    assert len(flows_plan(tree_of()).privacy.charges) == 4  # T
    assert len(flows_plan(tree_of(), neighbours=ADD).privacy.charges) == 5  # T + 1
    assert len(flows_plan(tree_of(), exactly=False).privacy.charges) == 5
    plan = flows_plan(tree_of(), max_contribution=3, exactly=False, distinct=True)
    assert [q.query for q in plan.queries] == ["grand_total", *["pairs"] * 3, "distinct_pairs"]
    assert plan.privacy.rho == 1
