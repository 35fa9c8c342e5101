"""Privacy contract: by brute force, no neighbour moves the measurements further than was charged.

Tiny worlds are enumerated completely. A neighbour is made of records, tabulated by the real
ingest, and answered by the real measurement step; the accountant's claims are taken from the plan.
Every kind of release joins by adding its worlds.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest

from contracts.neighbours import stated_cost, worst_cost
from trellis.ingest.records.counts import tabulate
from trellis.model import Hierarchy, Plan, PlannedQuery, Schema
from trellis.model.plans.answers import answers
from trellis.model.plans.shares import Shares
from trellis.planning.kinds.counts import CountsRequest, plan_counts
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours

HIERARCHY = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")], ["nation", "state", "town"]
)
LEAVES = HIERARCHY.codes("town").tolist()
STATE_OF = dict(zip(LEAVES, HIERARCHY.parents(2).tolist(), strict=True))


@dataclass(frozen=True)
class World:
    neighbours: Neighbours
    m: int
    n_cells: int
    unprotected: tuple[str, ...]
    budget: Budget

    def plan(self) -> Plan:
        request = CountsRequest(
            "tiny", "tiny", "person", self.neighbours, self.m, self.budget, Shares(),
            self.unprotected, "gls_topdown", Fraction(9, 10),
        )  # fmt: skip
        schema = Schema({"cell": [f"c{i}" for i in range(self.n_cells)]})
        return plan_counts(request, HIERARCHY, schema, "digest")

    def pairs(self):
        """All pairs of contents of one unit that neighbouring data sets may differ in."""
        places = list(product(LEAVES, range(self.n_cells)))
        contents = [c for size in range(self.m + 1) for c in
                    combinations_with_replacement(places, size)]  # fmt: skip
        if self.neighbours is Neighbours.ADD_REMOVE:
            return [(content, ()) for content in contents]
        within = self.plan().protection.within
        return [
            (a, b)
            for a, b in product(contents, contents)
            if len(a) == len(b) and (within is None or states(a) == states(b))
        ]


def states(content):
    """With exact totals by state, each record is replaced by one of the same state."""
    return sorted(STATE_OF[leaf] for leaf, _ in content)


WORLDS = [
    World(neighbours, m, n_cells, unprotected, budget)
    for neighbours, m, n_cells, unprotected, budget in product(
        Neighbours, (1, 2), (1, 2), ((), ("state",)),
        (Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))),
    )
    if not (unprotected and (neighbours is Neighbours.ADD_REMOVE or n_cells > 1))
]  # fmt: skip


def answers_of(plan: Plan, content, n_cells: int):
    """What is measured when only this unit's records are in the data."""
    cells = [f"c{i}" for i in range(n_cells)]
    columns = {"town": [leaf for leaf, _ in content]}
    for i, name in enumerate(cells):
        columns[name] = [int(cell == i) for _, cell in content]
    types = {"town": pa.string(), **dict.fromkeys(cells, pa.int64())}
    table = pa.table({name: pa.array(columns[name], types[name]) for name in types})
    counts = tabulate(table, HIERARCHY, "town", {name: {name: 1} for name in cells})
    return answers(plan, HIERARCHY, counts.leaves)


def assert_within_charge(plan: Plan, pairs, n_cells: int) -> None:
    """Each query within its sensitivity; the worst neighbour costs exactly what was charged."""
    cache = {}

    def measured(content):
        if content not in cache:
            cache[content] = answers_of(plan, content, n_cells)
        return cache[content]

    changes = [plan.privacy.change(charge) for charge in plan.privacy.charges]
    assert all(change.l1 == plan.protection.l1 for change in changes)
    assert all(change.l2_squared == plan.protection.l2_squared for change in changes)
    assert worst_cost(plan, pairs, measured) == stated_cost(plan)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_no_neighbour_moves_further_than_charged(world):
    assert_within_charge(world.plan(), world.pairs(), world.n_cells)


# -- mutations: each must make the check above fail -----------------------------------------------

MUTANT_WORLD = World(Neighbours.REPLACE, 1, 1, (), Budget(rho=Fraction(1)))


def test_mutation_forgotten_factor_of_replace_is_caught():
    plan = MUTANT_WORLD.plan()
    wrong = replace(plan, protection=replace(plan.protection, neighbours=Neighbours.ADD_REMOVE))
    with pytest.raises(AssertionError):
        assert_within_charge(wrong, MUTANT_WORLD.pairs(), 1)


def test_mutation_contribution_bound_too_small_is_caught():
    world = replace(MUTANT_WORLD, m=2)
    with pytest.raises(AssertionError):
        assert_within_charge(MUTANT_WORLD.plan(), world.pairs(), 1)


def test_mutation_exact_total_of_a_protected_level_is_caught():
    plan = MUTANT_WORLD.plan()
    leak = PlannedQuery("state", "total", Fraction(0), None)
    kept = [q for q in plan.queries if q.level != "state"]
    shares = [replace(q, share=Fraction(1)) if q.noise else q for q in kept]
    with pytest.raises(AssertionError, match="exact and moves"):
        assert_within_charge(replace(plan, queries=(*shares, leak)), MUTANT_WORLD.pairs(), 1)


def test_mutation_record_counted_twice_is_caught(monkeypatch):
    once = answers_of

    def twice(plan, content, n_cells):
        return [2 * answer for answer in once(plan, content, n_cells)]

    monkeypatch.setattr(f"{__name__}.answers_of", twice)
    with pytest.raises(AssertionError):
        assert_within_charge(MUTANT_WORLD.plan(), MUTANT_WORLD.pairs(), 1)
