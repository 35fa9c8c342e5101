"""Changes of location only, or of one attribute only, cost less than a whole record."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from trellis.model import Plan, PlannedQuery, Schema
from trellis.model.plans.smaller_changes import smaller_changes
from trellis.privacy import Accountant
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from worlds import plan_for

DELTA = 1e-8


def epsilons(plan: Plan) -> dict[str, float]:
    return {change.change: change.epsilon(DELTA) for change in smaller_changes(plan)}


def two_cells_of(*noises: int) -> float:
    """Epsilon when two cells move by one in each of the tables with this noise."""
    accountant = Accountant("add_remove")
    for variance in noises:
        accountant = accountant.add(DiscreteGaussian(Fraction(variance)), count=2)
    return accountant.epsilon(DELTA)


def cross_table(**changes: object) -> Plan:
    """sex x age on three levels, with noise of variance 2, 3 (sex), 5 (age) and 7 (detailed)."""
    share = Fraction(1, 4)
    queries = (
        PlannedQuery("nation", "total", share, DiscreteGaussian(Fraction(2))),
        PlannedQuery("state", "sex", share, DiscreteGaussian(Fraction(3))),
        PlannedQuery("state", "age", share, DiscreteGaussian(Fraction(5))),
        PlannedQuery("town", "detailed", share, DiscreteGaussian(Fraction(7))),
    )
    schema = Schema({"sex": ["f", "m"], "age": ["young", "old"]})
    return replace(plan_for(), schema=schema, queries=queries, **changes)


def test_each_change_pays_for_the_tables_that_it_moves() -> None:
    assert epsilons(cross_table()) == pytest.approx(
        {
            "location only, within one area of level nation": two_cells_of(3, 5, 7),
            "location only, within one area of level state": two_cells_of(7),
            "sex only": two_cells_of(3, 7),
            "age only": two_cells_of(5, 7),
        }
    )


def test_none_costs_more_than_the_release() -> None:
    for plan in (cross_table(), plan_for(), plan_for(n_cells=3, max_contribution=2)):
        whole = plan.privacy.epsilon(DELTA)
        assert all(epsilon <= whole for epsilon in epsilons(plan).values())


def test_what_no_table_separates_costs_nothing() -> None:
    plan = cross_table()
    only_sex = PlannedQuery("state", "sex", Fraction(1), DiscreteGaussian(Fraction(3)))
    found = epsilons(replace(plan, queries=(only_sex,)))
    assert found["age only"] == 0
    assert found["location only, within one area of level state"] == 0
    assert found["sex only"] == pytest.approx(two_cells_of(3))


def test_nothing_is_stated_for_added_or_removed_records() -> None:
    assert smaller_changes(plan_for(neighbours=Neighbours.ADD_REMOVE)) == []
