"""Privacy contract of flows: by brute force, no neighbour moves further than was charged.

Tiny worlds are enumerated completely: all trips of one unit, on top of a background. The real
ingest reads them, the real tree of true flows answers; the accountant's claims are the plan's.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, product

import pyarrow as pa
import pytest

from contracts.neighbours import stated_cost, worst_cost
from flow_worlds import MODES, ONE_CELL, dense, flows_plan, tree_of
from trellis.ingest.records.flows import TripColumns, TripRules, read_flows
from trellis.model import Hierarchy
from trellis.privacy.budget import Budget
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.neighbours import Neighbours

TREE = Hierarchy.from_paths([("r", "a", "1"), ("r", "a", "2"), ("r", "b", "3")],
                            ["nation", "state", "town"])  # fmt: skip
TOWNS = ("1", "2", "3")
PAIRS = list(product(TOWNS, TOWNS))


@dataclass(frozen=True)
class World:
    tree: str
    neighbours: Neighbours
    m: int
    exactly: bool
    distinct: bool
    budget: Budget
    modes: bool = False

    @property
    def schema(self):
        return MODES if self.modes else ONE_CELL

    def flow_tree(self):
        return tree_of(TREE, TREE, self.tree, self.schema)

    def plan(self):
        return flows_plan(
            self.flow_tree(), self.schema, neighbours=self.neighbours, max_contribution=self.m,
            exactly=self.exactly, distinct=self.distinct, budget=self.budget,
        )  # fmt: skip

    def contents(self):
        """All trips that one unit may have."""
        one = list(product(PAIRS, ("car", "bus"))) if self.modes else [(p, "car") for p in PAIRS]
        for number in [self.m] if self.exactly else range(self.m + 1):
            for trips in combinations_with_replacement(one, number):
                if not self.distinct or len({pair for pair, _ in trips}) == number:
                    yield trips

    def changes(self):
        contents = list(self.contents())
        if self.neighbours is Neighbours.ADD_REMOVE:
            return (((), trips) for trips in contents)
        return combinations(contents, 2)


@cache
def read(modes, trips):
    """The real ingest on the trips of one unit and a background of others."""
    rows = [("other", "1", "3", "bus"), *(("unit", o, d, mode) for (o, d), mode in trips)]
    names = ("person", "home", "work", "mode")
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    attributes = {"mode": ("car", "bus")} if modes else {}
    columns = TripColumns("home", "work", unit="person", attributes=attributes)
    schema = MODES if modes else ONE_CELL
    return read_flows(table, tree_of(TREE, schema=schema), columns, TripRules(2))


@cache
def tabulated(world, trips):
    tree, flows = world.flow_tree(), read(world.modes, trips)
    return [dense(flows, tree, level) for level in range(len(tree.shape.names))]


def assert_within_charge(plan, world, *, reached=True):
    worst = worst_cost(plan, world.changes(), partial(tabulated, world))
    assert worst <= stated_cost(plan)
    assert not reached or worst == stated_cost(plan)


GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))
WORLDS = [
    World(*rest)
    for rest in product(
        ("destination", "origin"), Neighbours, (1, 2), (True, False), (True, False), (GAUSSIAN,)
    )
] + [
    World("destination", Neighbours.REPLACE, 1, True, False, LAPLACE),
    World("destination", Neighbours.ADD_REMOVE, 2, False, True, LAPLACE),
    World("destination", Neighbours.REPLACE, 1, True, False, GAUSSIAN, modes=True),
    World("origin", Neighbours.ADD_REMOVE, 2, False, True, GAUSSIAN, modes=True),
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_no_neighbour_moves_further_than_charged(world):
    # Under replace, a total that moves leaves one side of the change empty; and two states do not
    # hold the distinct pairs that every level would need to move most at once.
    reached = world.neighbours is Neighbours.ADD_REMOVE or (world.exactly and not world.distinct)
    assert_within_charge(world.plan(), world, reached=reached)


@pytest.mark.parametrize("epsilon", ["1/10", 1])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("exactly", [True, False])
def test_calibrated_noise_keeps_the_budget_with_mixed_tables(epsilon, distinct, exactly):
    budget = Budget(epsilon=Fraction(epsilon), delta=Fraction(1, 10**8))
    world = World("destination", Neighbours.REPLACE, 2, exactly, distinct, budget)
    plan = world.plan()
    assert plan.privacy.accountant.delta(budget.epsilon) <= budget.delta
    less = tuple(
        replace(c, mechanism=type(c.mechanism)(c.mechanism.sigma_squared * Fraction(99, 100)))
        for c in plan.privacy.charges
    )
    assert replace(plan.privacy, charges=less).accountant.delta(budget.epsilon) > budget.delta


# -- mutations: each must make the check above fail -----------------------------------------------

DISTINCT = World("destination", Neighbours.ADD_REMOVE, 2, False, True, GAUSSIAN)


def test_mutation_the_published_sensitivity_is_caught():
    """Distinct pairs of towns are taken to be distinct on every level, as in the literature."""
    plan = DISTINCT.plan()
    distinct = FlowTable(FlowQuery.DISTINCT_PAIRS, 2)
    everywhere = [replace(q, table=distinct) if "-to-" in q.level and q.query == "pairs"
                  else q for q in plan.queries]  # fmt: skip
    with pytest.raises(AssertionError):
        assert_within_charge(replace(plan, queries=tuple(everywhere)), DISTINCT, reached=False)


def test_mutation_exact_total_of_at_most_m_trips_is_caught():
    world = World("destination", Neighbours.REPLACE, 2, False, False, GAUSSIAN)
    plan = replace(world, exactly=True).plan()
    with pytest.raises(AssertionError, match="exact and moves"):
        assert_within_charge(plan, world)


def test_mutation_bound_too_small_is_caught():
    world = World("destination", Neighbours.REPLACE, 2, True, False, GAUSSIAN)
    with pytest.raises(AssertionError):
        assert_within_charge(replace(world, m=1).plan(), world, reached=False)


def test_mutation_forgotten_factor_of_replace_is_caught():
    world = World("destination", Neighbours.REPLACE, 1, False, False, GAUSSIAN)
    wrong = replace(world, neighbours=Neighbours.ADD_REMOVE).plan()
    with pytest.raises(AssertionError):
        assert_within_charge(wrong, world, reached=False)
