"""The world of group sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pyarrow as pa

from kinds.world import COUNT, FRACTION, MUCH_NOISE, TEXT, Audit, Case, Mutant, Planted, World
from seeded_bits import SeededBits
from size_worlds import TREE, sizes_plan, write_size_world
from trellis.confidential.counts import TrueCounts
from trellis.ingest.public.registers import read_units
from trellis.ingest.records import group_sizes as ingest
from trellis.ingest.records.group_sizes import RecordColumns, Sizes, sizes_from_records
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Plan
from trellis.model.plans.answers import answers
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.changes import Change
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours

CAP = 4
UNITS = {"p": "a1", "q": "a1", "u": "b1"}
REGISTER = pa.table({"unit": list(UNITS), "town": list(UNITS.values())})
GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))


@dataclass(frozen=True)
class SizesCase(Case):
    """All sizes of the groups of a public register, and all records of one person on top."""

    method: str
    neighbours: Neighbours
    m: int
    z: int
    budget: Budget

    def plan(self) -> Plan:
        return sizes_plan(
            cap=CAP, method=self.method, neighbours=self.neighbours, max_contribution=self.m,
            max_quantity=self.z, budget=self.budget,
        )  # fmt: skip

    def pairs(self):
        """Sizes of all groups before and after, for all backgrounds and contents of one person."""
        records = list(product(range(len(UNITS)), range(self.z + 1)))
        contents = list(combinations_with_replacement(records, self.m))
        for background in product(range(3), repeat=len(UNITS)):
            sizes = {with_records(background, content) for content in contents}
            if self.neighbours is Neighbours.ADD_REMOVE:
                yield from ((background, after) for after in sizes)
            else:
                yield from combinations_with_replacement(sorted(sizes), 2)

    def measured(self, plan, content):
        return answers(plan, TREE, tabulated(content, self.z).leaves)

    def reached(self, plan) -> Fraction:
        """Replacing two records takes four groups to reach the worst; formulas have a test."""
        return Fraction(self.m == 1 or self.neighbours is Neighbours.ADD_REMOVE)


def with_records(background, content):
    sizes = list(background)
    for unit, quantity in content:
        sizes[unit] += quantity
    return tuple(sizes)


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


# -- mutants --------------------------------------------------------------------------------------

SMALL = SizesCase("histogram_exact", Neighbours.REPLACE, 1, 1, GAUSSIAN)
JOINT = replace(SMALL, method="cumulative_joint")


class Doubled:
    """A table of counts would cost 2 per cell moved, 4 in all; two groups of one size cost 6."""

    def change(self, neighbours, m):
        return Change(((1, 4),), merged=1)


def doubling_the_histogram_instead_of_its_change_vector():
    plan = SMALL.plan()
    cheap = [
        replace(q, noise=DiscreteGaussian(q.noise.sigma_squared * Fraction(4, 6))) if q.noise else q
        for q in plan.queries
    ]
    less = replace(plan, queries=tuple(cheap))
    assert less.privacy.rho == Fraction(6, 4)  # the plan itself cannot be made to say 1
    charges = tuple(replace(charge, table=Doubled()) for charge in less.privacy.charges)

    class Fooled:
        queries, privacy = less.queries, replace(less.privacy, charges=charges)
        schema, spine = less.schema, less.spine

    assert Fooled.privacy.rho == 1
    return Mutant(SMALL, Fooled)


def forgotten_factor_of_replace():
    return Mutant(SMALL, replace(SMALL, neighbours=Neighbours.ADD_REMOVE).plan())


def contribution_bound_too_small():
    return Mutant(replace(JOINT, m=2), JOINT.plan())


def quantity_bound_too_small():
    return Mutant(replace(JOINT, z=2), JOINT.plan())


def register_made_of_the_records():
    """Sizes from 1: the published lemma. A group whose only member leaves vanishes."""

    def without_empty_groups(plan, content):
        leaves = tabulated(content, 1).leaves.copy()
        leaves[:, 0] = 0
        return answers(plan, TREE, leaves)

    return Mutant(JOINT, JOINT.plan(), without_empty_groups, says="exact and moves")


# -- the audit ------------------------------------------------------------------------------------

TRIALS = 40_000
MANY = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
SIZES = (np.array([0, 2, 0]), np.array([1, 0, 1]))
"""Groups of each town by size: two of one member each; or one without, and one of two."""


def audit(method: str, budget: Budget, stated=None) -> Audit:
    """Every town is a trial. The change of the histogram is (+1, -2, +1)."""
    shares = Shares({"town": Fraction(1)})
    plan = sizes_plan(
        MANY, cap=2, method=method, budget=budget, shares=shares, neighbours=Neighbours.REPLACE
    )
    query = plan.cell_query

    def measured(folder, plan, world, seed):
        counts = TrueCounts(np.tile(SIZES[world], (TRIALS, 1)))
        noise = ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))
        return {query: measure_counts(plan, MANY, counts, noise).answer("town", query)[0]}

    def truth(sizes):
        return {query: np.cumsum(sizes)[:-1] if query == "cumulative" else sizes}

    truths = (truth(SIZES[0]), truth(SIZES[1]))
    return Audit(plan, truths, measured, stated or plan.privacy.accountant.delta)


class GroupSizesWorld(World):
    """Groups by size."""

    kind = "group_sizes"
    unfit: ClassVar = {
        "numbers of groups that are not said to be exact": {"unprotected__groups": False},
        "a cap below one": {"sizes__cap": 0},
        "a bound of nothing": {"data__max_quantity": 3},
        "no shares": {"privacy__shares": None},
    }  # fmt: skip
    planted = Planted(
        spec={
            "release": "canary",
            "kind": "group_sizes",
            "dataset": "canary",
            "data": {"source": "records.parquet", "area": "area", "size": "size",
                     "groups": "homes"},
            "group_register": {"source": "register.csv", "area": "area", "groups": "homes"},
            "sizes": {"cap": 3, "top_code": True},
            "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
            "privacy": {**MUCH_NOISE, "shares": "uniform"},
            "unprotected": {"groups": True},
        },
        # Public numbers of groups; how they divide into sizes is not.
        files={"areas.csv": "region,area\nr,a1\nr,a2\n",
               "register.csv": "area,homes\na1,9999999\na2,5000000\n"},
        good={"area": ["a1", "a1", "a2"], "size": [1, 2, 1],
              "homes": [COUNT, 9999999 - COUNT, 5000000]},
        bad={
            "negative": {"homes": [-COUNT, 1, 2]},
            "fractional": {"homes": [FRACTION, 1.0, 2.0]},
            "text": {"homes": [TEXT, "1", "2"]},
            "missing": {"homes": [COUNT, None, 2]},
            "size above the cap": {"size": [COUNT, 1, 2]},
            "fractional size": {"size": [FRACTION, 1.0, 2.0]},
            "unknown area": {"area": ["a1", TEXT, "a2"]},
            "other totals": {"homes": [COUNT, 1, 2]},
        },
        bad_ways={"sizes": {"cap": 3}},
        measuring="measure_counts",
        quoted=ingest,
        quoted_end="min",
        quoted_records={"size": [COUNT] * 3},
        ways=[{"estimate": {"method": name}} for name in ("histogram_exact", "cumulative_joint")],
        crashes=[(step, {}) for step in ("measure_counts", "write_measurements", "publish")],
    )  # fmt: skip

    def write(self, folder, **changes):
        return write_size_world(folder, **changes)

    def cases(self):
        return [
            SizesCase(method, *rest)
            for method, *rest in product(
                ("histogram_exact", "cumulative_joint"), Neighbours, (1, 2), (1, 2),
                (GAUSSIAN, LAPLACE),
            )
            if rest[1] * rest[2] < 4
        ]  # fmt: skip

    def mutants(self):
        made = (doubling_the_histogram_instead_of_its_change_vector, forgotten_factor_of_replace,
                contribution_bound_too_small, quantity_bound_too_small,
                register_made_of_the_records)  # fmt: skip
        return {make.__name__: make for make in made}

    def audits(self):
        return {
            f"{method}, {budget.in_words()}": lambda m=method, b=budget: audit(m, b)
            for method in ("histogram_exact", "cumulative_joint")
            for budget in (GAUSSIAN, Budget(epsilon=Fraction(2)))
        }

    def halved(self):
        """Squared L2 of four, as doubling an added record would have it."""
        honest = audit("histogram_exact", GAUSSIAN)
        doubled = audit("histogram_exact", Budget(rho=Fraction(3, 2)), honest.stated)
        assert doubled.plan.queries[-1].noise.sigma_squared == 2  # 4 / (2 rho)
        return honest, doubled


WORLD = GroupSizesWorld()
