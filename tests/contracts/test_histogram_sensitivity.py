"""Privacy contract of histograms: by brute force, no neighbour moves what is measured too far.

As for counts of one cell: all neighbours of a tiny world, tabulated by the real ingest and answered
by the real measurement step, over all query groups with recodes, products and exact totals.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest

from contracts.neighbours import stated_cost, worst_cost
from histogram_release_worlds import SCHEMA, TREE, histogram_plan
from trellis.ingest.records.histograms import tabulate_long
from trellis.model import Plan, PlannedQuery
from trellis.model.plans.answers import histogram_answers
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours

LEAVES = TREE.codes("town").tolist()
STATE_OF = dict(zip(LEAVES, TREE.parents(2).tolist(), strict=True))
PLACES = [(leaf, *cell) for leaf, cell in product(LEAVES, SCHEMA.cells())]


@dataclass(frozen=True)
class World:
    neighbours: Neighbours
    m: int
    unprotected: tuple[str, ...]
    budget: Budget

    def plan(self) -> Plan:
        return histogram_plan(
            neighbours=self.neighbours, max_contribution=self.m, budget=self.budget,
            unprotected_totals=self.unprotected,
        )  # fmt: skip

    def pairs(self):
        """All pairs of contents of one unit that neighbouring data sets may differ in."""
        places = PLACES if self.m == 1 else PLACES[:3] + PLACES[-2:]
        contents = [
            c for size in range(self.m + 1) for c in combinations_with_replacement(places, size)
        ]
        if self.neighbours is Neighbours.ADD_REMOVE:
            return [(content, ()) for content in contents]
        within = self.plan().protection.within
        return [
            (a, b)
            for a, b in product(contents, contents)
            if len(a) == len(b) and (within is None or states(a) == states(b))
        ]


def states(content):
    return sorted(STATE_OF[leaf] for leaf, *_ in content)


GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))
WORLDS = [
    World(neighbours, m, unprotected, budget)
    for neighbours, m, unprotected, budget in product(
        Neighbours, (1, 2), ((), ("state",)), (GAUSSIAN, LAPLACE)
    )
    if not (unprotected and neighbours is Neighbours.ADD_REMOVE)
]


@cache
def tabulated(content):
    """The true histograms when only this unit's records are in the data."""
    columns = {name: [row[i] for row in content] for i, name in enumerate(("town", "age", "sex"))}
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return tabulate_long(table, TREE, SCHEMA, "town", {"age": "age", "sex": "sex"}, None)


def answers(plan: Plan, content):
    return histogram_answers(plan, TREE, tabulated(content).leaves)


_MEASURED = {}


def assert_within_charge(plan: Plan, pairs) -> None:
    """Each query within its sensitivity; the worst neighbour costs exactly what was charged."""

    def measured(content):
        key = (content, tuple((q.level, q.query) for q in plan.queries))
        if key not in _MEASURED:
            _MEASURED[key] = answers(plan, content)
        return _MEASURED[key]

    worst, stated = worst_cost(plan, pairs, measured), stated_cost(plan)
    assert worst <= stated
    # Under replace the root's total does not move, and the strategy pays for it all the same.
    free = sum(q.share for q in plan.queries if q.query == "total" and
               any(e.noise is None and e.level == q.level for e in plan.queries))  # fmt: skip
    assert worst >= stated * (1 - free)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_no_neighbour_moves_further_than_charged(world):
    assert_within_charge(world.plan(), world.pairs())


def test_the_worlds_have_every_kind_of_query():
    queries = {q.query for q in WORLDS[0].plan().queries}
    assert queries == {"total", "sex", "adult * sex", "detailed"}


# -- mutations: each must make the check above fail -----------------------------------------------

MUTANT = World(Neighbours.REPLACE, 1, (), GAUSSIAN)


def test_mutation_forgotten_factor_of_replace_is_caught():
    plan = MUTANT.plan()
    wrong = replace(plan, protection=replace(plan.protection, neighbours=Neighbours.ADD_REMOVE))
    with pytest.raises(AssertionError):
        assert_within_charge(wrong, MUTANT.pairs())


def test_mutation_contribution_bound_too_small_is_caught():
    with pytest.raises(AssertionError):
        assert_within_charge(MUTANT.plan(), replace(MUTANT, m=2).pairs())


def test_mutation_exact_total_of_a_protected_level_is_caught():
    plan = MUTANT.plan()
    leak = PlannedQuery("state", "total", Fraction(0), None)
    with pytest.raises(AssertionError, match="exact and moves"):
        assert_within_charge(replace(plan, queries=(*plan.queries, leak)), MUTANT.pairs())


def test_mutation_overlapping_groups_of_a_query_are_caught(monkeypatch):
    """A query that counts some cells twice moves further than a partition."""

    def twice(plan, content):
        exact = answers_once(plan, content)
        return [2 * a if q.query == "sex" else a for q, a in zip(plan.queries, exact, strict=True)]

    answers_once = answers
    monkeypatch.setattr(f"{__name__}.answers", twice)
    monkeypatch.setattr(f"{__name__}._MEASURED", {})
    with pytest.raises(AssertionError):
        assert_within_charge(MUTANT.plan(), MUTANT.pairs())


def test_mutation_a_share_that_is_not_charged_is_caught():
    """More accurate noise than the plan states costs more than it says."""
    plan = MUTANT.plan()
    cheap = [replace(q, noise=replace_noise(q.noise)) if q.query == "sex" else q
             for q in plan.queries]  # fmt: skip
    less = replace(plan, queries=tuple(cheap))
    assert less.privacy.rho > 1  # the ledger would see it


def replace_noise(noise):
    return type(noise)(noise.sigma_squared / 2)
