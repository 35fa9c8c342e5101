"""Privacy contract of group sizes: by brute force, no neighbour moves further than was charged.

Tiny worlds are enumerated completely: all sizes of the groups of a public register, and all records
of one person on top of them. The real ingest tabulates, the real measurement step answers; the
accountant's claims are taken from the plan.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest

from contracts.neighbours import stated_cost, worst_cost
from size_worlds import TREE, sizes_plan
from trellis.confidential.counts import TrueCounts
from trellis.ingest.public.registers import read_units
from trellis.ingest.records.group_sizes import RecordColumns, Sizes, sizes_from_records
from trellis.model import Plan
from trellis.model.plans.answers import answers
from trellis.model.plans.group_sizes import SIZE_METHODS
from trellis.privacy.budget import Budget
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours

CAP = 4
UNITS = {"p": "a1", "q": "a1", "u": "b1"}
REGISTER = pa.table({"unit": list(UNITS), "town": list(UNITS.values())})


@dataclass(frozen=True)
class World:
    mechanism: str
    neighbours: Neighbours
    m: int
    z: int
    budget: Budget

    def plan(self) -> Plan:
        return sizes_plan(
            cap=CAP, method=self.mechanism, neighbours=self.neighbours, max_contribution=self.m,
            max_quantity=self.z, budget=self.budget,
        )  # fmt: skip

    def changes(self):
        """Sizes of all groups before and after, for all backgrounds and contents of one person."""
        records = list(product(range(len(UNITS)), range(self.z + 1)))
        contents = list(combinations_with_replacement(records, self.m))
        for background in product(range(3), repeat=len(UNITS)):
            sizes = {with_records(background, content) for content in contents}
            if self.neighbours is Neighbours.ADD_REMOVE:
                yield from ((background, after) for after in sizes)
            else:
                yield from combinations_with_replacement(sorted(sizes), 2)


def with_records(background, content):
    sizes = list(background)
    for unit, quantity in content:
        sizes[unit] += quantity
    return tuple(sizes)


GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))
WORLDS = [
    World(mechanism, *rest)
    for mechanism, *rest in product(
        ("histogram_exact", "cumulative_joint"), Neighbours, (1, 2), (1, 2), (GAUSSIAN, LAPLACE)
    )
    if rest[1] * rest[2] < 4
]


@cache
def tabulated(sizes: tuple[int, ...], z: int) -> TrueCounts:
    """The real ingest on records that give the groups these sizes."""
    rows = [(unit, min(z, size - begun)) for unit, size in zip(UNITS, sizes, strict=True)
            for begun in range(0, size, z)]  # fmt: skip
    names, quantities = [unit for unit, _ in rows], [quantity for _, quantity in rows]
    table = {"unit": pa.array(names, pa.string()), "trips": pa.array(quantities, pa.int64())}
    columns = RecordColumns("unit", quantity="trips" if z > 1 else None, max_quantity=z)
    units = read_units(REGISTER, TREE, "unit", "town")
    return sizes_from_records(pa.table(table), TREE, units, columns, Sizes(CAP, top_code=True))


def assert_within_charge(plan: Plan, changes, z: int, *, reached: bool = True) -> None:
    """Each query within its change; the worst neighbour costs exactly what was charged."""
    cache = {}

    def measured(sizes):
        if sizes not in cache:
            cache[sizes] = answers(plan, TREE, tabulated(sizes, z).leaves)
        return cache[sizes]

    worst = worst_cost(plan, changes, measured)
    assert worst <= stated_cost(plan)
    assert not reached or worst == stated_cost(plan)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_no_neighbour_moves_further_than_charged(world):
    # To reach the worst, replacing two records takes four groups; the formulas have their own test.
    reached = world.m == 1 or world.neighbours is Neighbours.ADD_REMOVE
    assert_within_charge(world.plan(), world.changes(), world.z, reached=reached)


def test_every_mechanism_measures_one_of_the_tables_above():
    covered = {SIZE_METHODS[world.mechanism].query for world in WORLDS}
    assert {m.query for m in SIZE_METHODS.values()} == covered == set(SizeQuery)


# -- mutations: each must make the check above fail -----------------------------------------------

MUTANT = World("histogram_exact", Neighbours.REPLACE, 1, 1, GAUSSIAN)


def test_mutation_doubling_the_histogram_instead_of_its_change_vector_is_caught():
    """A table of counts would cost 2 per cell moved, 4 in all; two groups of one size cost 6."""
    plan = MUTANT.plan()
    cheap = [
        replace(q, noise=DiscreteGaussian(q.noise.sigma_squared * Fraction(4, 6))) if q.noise else q
        for q in plan.queries
    ]
    less = replace(plan, queries=tuple(cheap))
    assert less.privacy.rho == Fraction(6, 4)  # the plan itself cannot be made to say 1

    class Doubled:
        def change(self, neighbours, m):
            from trellis.privacy.changes import Change

            return Change(((1, 4),), merged=1)

    charges = tuple(replace(charge, table=Doubled()) for charge in less.privacy.charges)

    class Fooled:
        queries, privacy = less.queries, replace(less.privacy, charges=charges)
        schema, spine = less.schema, less.spine

    assert Fooled.privacy.rho == 1
    with pytest.raises(AssertionError):
        assert_within_charge(Fooled, MUTANT.changes(), 1)


def test_mutation_forgotten_factor_of_replace_is_caught():
    wrong = replace(MUTANT, neighbours=Neighbours.ADD_REMOVE).plan()
    with pytest.raises(AssertionError):
        assert_within_charge(wrong, MUTANT.changes(), 1)


@pytest.mark.parametrize("bound", ["m", "z"])
def test_mutation_bound_too_small_is_caught(bound):
    world = replace(MUTANT, mechanism="cumulative_joint", **{bound: 2})
    small = replace(world, **{bound: 1})
    with pytest.raises(AssertionError):
        assert_within_charge(small.plan(), world.changes(), world.z)


def test_mutation_register_made_of_the_records_is_caught(monkeypatch):
    """Sizes from 1: the published lemma. A group whose only member leaves vanishes."""
    real = tabulated

    def without_empty_groups(sizes, z):
        leaves = real(sizes, z).leaves.copy()
        leaves[:, 0] = 0
        return TrueCounts(leaves)

    monkeypatch.setattr(f"{__name__}.tabulated", without_empty_groups)
    world = replace(MUTANT, mechanism="cumulative_joint")
    with pytest.raises(AssertionError, match="exact and moves"):
        assert_within_charge(world.plan(), world.changes(), 1)
