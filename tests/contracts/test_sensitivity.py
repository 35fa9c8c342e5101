"""Privacy contract: by brute force, no neighbour moves the measurements further than was charged.

Tiny worlds are enumerated completely. A neighbour is made of records, tabulated by the real ingest,
and answered by the real measurement step; the accountant's claims are taken from the plan. Every
kind of release joins through its world in `tests/kinds/`.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from contracts.neighbours import stated_cost, worst_cost
from kinds import WITH_TOYS, WORLDS, require_worlds
from kinds.counts import OnTree
from kinds.group_sizes import SizesCase
from kinds.histograms import HistogramCase
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS
from trellis.privacy.changes import Partition
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours

CASES = [(kind, case) for kind, world in WITH_TOYS.items() for case in world.cases()]
MUTANTS = [(kind, name) for kind, world in WITH_TOYS.items() for name in world.mutants()]


def assert_within_charge(case, plan, measured=None, reached=Fraction(0)) -> None:
    """Each query within its sensitivity, and the worst neighbour within what was charged."""
    answer, known = measured or case.measured, {}

    def answers(content):
        if content not in known:
            known[content] = answer(plan, content)
        return known[content]

    worst, stated = worst_cost(plan, case.pairs(), answers), stated_cost(plan)
    assert worst <= stated
    assert worst >= stated * reached


@pytest.mark.parametrize(("kind", "case"), CASES, ids=str)
def test_no_neighbour_moves_further_than_charged(kind, case):
    plan = case.plan()
    assert_within_charge(case, plan, reached=case.reached(plan))


@pytest.mark.parametrize(("kind", "name"), MUTANTS)
def test_mutation_is_caught(kind, name):
    mutant = WITH_TOYS[kind].mutants()[name]()
    with pytest.raises(AssertionError, match=mutant.says or None):
        assert_within_charge(mutant.case, mutant.plan, mutant.measured)


# -- the worlds are worth something ---------------------------------------------------------------


def test_a_kind_without_a_world_fails_collection():
    require_worlds(WORLDS, WORLDS)
    with pytest.raises(LookupError, match="No world for kind means"):
        require_worlds([*WORLDS, "means"], WORLDS)


@pytest.mark.parametrize("kind", WITH_TOYS)
def test_worlds_have_both_neighbours_both_laws_and_several_records(kind):
    plans = [case.plan() for case in WITH_TOYS[kind].cases()]
    assert {plan.protection.neighbours for plan in plans} == set(Neighbours)
    assert {type(q.noise) for p in plans for q in p.queries if q.noise} == {
        DiscreteGaussian, DiscreteLaplace
    }  # fmt: skip
    assert any(plan.protection.max_contribution > 1 for plan in plans)
    assert {plan.kind for plan in plans} == {kind}


@pytest.mark.parametrize("kind", WITH_TOYS)
def test_most_prices_are_tight(kind):
    cases = WITH_TOYS[kind].cases()
    tight = [case for case in cases if case.reached(case.plan()) > Fraction(1, 2)]
    assert len(tight) > len(cases) / 2


@pytest.mark.parametrize("case", [c for _, c in CASES if isinstance(c, OnTree)], ids=str)
def test_counts_are_charged_as_partitions(case):
    plan = case.plan()
    changes = [plan.privacy.change(charge) for charge in plan.privacy.charges]
    assert all(change.l1 == plan.protection.l1 for change in changes)
    assert all(change.l2_squared == plan.protection.l2_squared for change in changes)


def test_histograms_have_every_kind_of_query():
    case = next(case for _, case in CASES if isinstance(case, HistogramCase))
    assert {q.query for q in case.plan().queries} == {"total", "sex", "adult * sex", "detailed"}


def test_every_method_of_group_sizes_measures_one_of_the_tables_above():
    covered = {SIZE_METHODS[case.method].query for _, case in CASES if isinstance(case, SizesCase)}
    assert {m.query for m in SIZE_METHODS.values()} == covered == set(SizeQuery)


def test_a_sum_of_bounded_values_moves_as_far_as_its_bound():
    for neighbours, sides in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        change = Partition(7).change(neighbours, 3)
        assert (change.l1, change.l2_squared) == (sides * 21, sides * 21**2)
