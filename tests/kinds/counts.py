"""The world of counts, on trees and on spines."""

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
from trellis.confidential.counts import TrueCounts
from trellis.ingest.records import counts as ingest
from trellis.ingest.records.counts import tabulate
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Plan, PlannedQuery, Schema
from trellis.model.plans.answers import answers
from trellis.model.plans.shares import Shares
from trellis.model.trees.areas import Category
from trellis.planning.kinds.counts import CountsRequest, plan_counts
from trellis.planning.spine.counts import plan_counts_on_spine
from trellis.planning.spine.steps import Branch, Bypass, GroupLevel, RegroupLeaves
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.spines import spine_digest
from worlds import plan_for, write_world

HIERARCHY = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")], ["nation", "state", "town"]
)
LEAVES = HIERARCHY.codes("town").tolist()
STATE_OF = dict(zip(LEAVES, HIERARCHY.parents(2).tolist(), strict=True))
RHO_1, EPSILON_1 = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))


def request(neighbours: Neighbours, m: int, budget: Budget, exact: tuple[str, ...] = ()):
    return CountsRequest(
        "tiny", "tiny", "person", neighbours, m, budget, Shares(), exact, "gls_topdown",
        Fraction(9, 10),
    )  # fmt: skip


def cells(n: int) -> Schema:
    return Schema({"cell": [f"c{i}" for i in range(n)]})


@dataclass(frozen=True)
class OnTree(Case):
    """Records of one unit, tabulated by the real ingest."""

    neighbours: Neighbours
    m: int
    n_cells: int
    unprotected: tuple[str, ...]
    budget: Budget

    def plan(self) -> Plan:
        asked = request(self.neighbours, self.m, self.budget, self.unprotected)
        return plan_counts(asked, HIERARCHY, cells(self.n_cells), "digest")

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

    def measured(self, plan, content):
        return answers(plan, HIERARCHY, tabulated(content, self.n_cells))


def states(content):
    """With exact totals by state, each record is replaced by one of the same state."""
    return sorted(STATE_OF[leaf] for leaf, _ in content)


@cache
def tabulated(content, n_cells):
    """What is counted when only this unit's records are in the data."""
    names = [f"c{i}" for i in range(n_cells)]
    columns = {"town": [leaf for leaf, _ in content]}
    for i, name in enumerate(names):
        columns[name] = [int(cell == i) for _, cell in content]
    types = {"town": pa.string(), **dict.fromkeys(names, pa.int64())}
    table = pa.table({name: pa.array(columns[name], types[name]) for name in types})
    return tabulate(table, HIERARCHY, "town", {name: {name: 1} for name in names}).leaves


# -- spines ---------------------------------------------------------------------------------------

TREE = Hierarchy.from_paths(
    [("r", "a", "a1", "p"), ("r", "a", "a1", "q"), ("r", "a", "a2", "s"), ("r", "b", "b1", "t"),
     ("r", "b", "b2", "u"), ("r", "b", "b2", "v"), ("r", "b", "b2", "w"), ("r", "b", "b2", "x")],
    ["nation", "state", "town", "block"],
)  # fmt: skip
PLACES = {"place": Category.of([None, "A", "A", None, "B", "B", None, None], "place")}
SPINES = {
    "regroup": (RegroupLeaves(("place",), 0), Bypass()),
    "group": (GroupLevel("town", ("place",), 1), Bypass()),
    "branch": (Branch("state", ("place",)), Bypass()),
    "bypass": (Bypass(),),
    "no bypass": (RegroupLeaves(("place",), 0),),
}


@dataclass(frozen=True)
class OnSpine(Case):
    """The same on a tree that is not the published one."""

    spine: str
    neighbours: Neighbours
    m: int
    n_cells: int
    budget: Budget

    def made(self):
        asked, schema = request(self.neighbours, self.m, self.budget), cells(self.n_cells)
        steps = SPINES[self.spine]
        return plan_counts_on_spine(asked, TREE, schema, "digest", steps, PLACES, spine_digest)

    def plan(self) -> Plan:
        return self.made().plan

    def pairs(self):
        places = list(product(range(8), range(self.n_cells)))
        contents = [
            c for size in range(self.m + 1) for c in combinations_with_replacement(places, size)
        ]
        if self.neighbours is Neighbours.ADD_REMOVE:
            return [(content, ()) for content in contents]
        return [(a, b) for a, b in combinations_with_replacement(contents, 2) if len(a) == len(b)]

    def measured(self, plan, content):
        return answers(plan, TREE, on_blocks(content, self.n_cells), spine_of(self))


spine_of = cache(lambda case: case.made().spine)


def on_blocks(content, n_cells):
    leaves = np.zeros((8, n_cells), dtype=np.int64)
    for leaf, cell in content:
        leaves[leaf, cell] += 1
    return leaves


# -- mutants --------------------------------------------------------------------------------------

SMALL = OnTree(Neighbours.REPLACE, 1, 1, (), RHO_1)
BYPASSED = OnSpine("bypass", Neighbours.REPLACE, 1, 1, RHO_1)


def forgotten_factor_of_replace():
    plan = SMALL.plan()
    protection = replace(plan.protection, neighbours=Neighbours.ADD_REMOVE)
    return Mutant(SMALL, replace(plan, protection=protection))


def contribution_bound_too_small():
    return Mutant(replace(SMALL, m=2), SMALL.plan())


def exact_total_of_a_protected_level():
    plan = SMALL.plan()
    leak = PlannedQuery("state", "total", Fraction(0), None)
    kept = [q for q in plan.queries if q.level != "state"]
    shares = [replace(q, share=Fraction(1)) if q.noise else q for q in kept]
    return Mutant(SMALL, replace(plan, queries=(*shares, leak)), says="exact and moves")


def record_counted_twice():
    return Mutant(
        SMALL, SMALL.plan(), lambda plan, content: [2 * a for a in SMALL.measured(plan, content)]
    )


def doubled_share_on_a_spine():
    """A node whose share went up and that keeps its own as well costs more than the budget."""
    plan = BYPASSED.plan()
    queries = tuple(
        replace(q, noise=type(q.noise)(q.noise.parameter / 2)) if q.noise else q
        for q in plan.queries
    )

    class Fooled:
        """It says what the plan said before its noise was halved."""

        privacy = plan.privacy

        def __init__(self):
            self.queries = queries

        def __getattr__(self, name):
            return getattr(replace(plan, queries=queries), name)

    return Mutant(BYPASSED, Fooled())


# -- the audit ------------------------------------------------------------------------------------

TRIALS = 40_000
MANY = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])


def audit(budget: Budget, neighbours: Neighbours, cells_of=((1, 0), (0, 1)), stated=None) -> Audit:
    """Every town is a trial: its person is in one cell, or in another, or not there."""
    shares = Shares({"town": Fraction(1)})
    plan = plan_for(MANY, 2, budget=budget, neighbours=neighbours, shares=shares)

    def measured(folder, plan, world, seed):
        counts = TrueCounts(np.tile(np.array(cells_of[world]), (TRIALS, 1)))
        noise = ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))
        found = measure_counts(plan, MANY, counts, noise).answer("town", "detailed")
        return {"detailed": found[0]}

    truths = tuple({"detailed": np.array(cells)} for cells in cells_of)
    return Audit(plan, truths, measured, stated or plan.privacy.accountant.delta)


NOBODY = ((1, 0), (0, 0))


class CountsWorld(World):
    """Records by cell of a table, for every area."""

    kind = "counts"
    unfit: ClassVar = {
        "two forms of data": {"data__cells": {"total": "people"}},
        "a share of a level that is not there": {"spine": ["nonsense"]},
    }  # fmt: skip
    planted = Planted(
        spec={
            "release": "canary",
            "kind": "counts",
            "dataset": "canary",
            "data": {"source": "records.parquet", "area": "area", "count": "people"},
            "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
            "privacy": MUCH_NOISE,
        },
        files={"areas.csv": "region,area\nr,a1\nr,a2\nr,a3\n"},
        good={"area": ["a1", "a2", "a3"], "people": [COUNT, 5_000_000, 2_000_000]},
        bad={
            "negative": {"people": [-COUNT, 1, 2]},
            "fractional": {"people": [FRACTION, 1.0, 2.0]},
            "text": {"people": [TEXT, "1", "2"]},
            "missing": {"people": [COUNT, None, 2]},
            "too large": {"people": [COUNT * 10**12, 1, 2]},
            "unknown area": {"people": [COUNT, 1, 2], "area": ["a1", TEXT, "a3"]},
            "area missing": {"people": [COUNT, 1, 2], "area": ["a1", None, "a3"]},
        },
        measuring="measure_counts",
        quoted=ingest,
        quoted_end="min",
        quoted_records={"people": [-COUNT, 1, 2]},
        crashes=[(step, {}) for step in ("measure_counts", "write_measurements", "sync_tree",
                                         "publish")],
    )  # fmt: skip

    def write(self, folder, **changes):
        return write_world(folder, **changes)

    def cases(self):
        on_tree = [
            OnTree(neighbours, m, n_cells, unprotected, budget)
            for neighbours, m, n_cells, unprotected, budget in product(
                Neighbours, (1, 2), (1, 2), ((), ("state",)), (RHO_1, EPSILON_1)
            )
            if not (unprotected and (neighbours is Neighbours.ADD_REMOVE or n_cells > 1))
        ]
        on_spines = [
            OnSpine(spine, neighbours, m, n_cells, budget)
            for (m, n_cells), neighbours, budget, spine in product(
                ((1, 1), (1, 2), (2, 1)), Neighbours, (RHO_1, EPSILON_1), SPINES
            )
        ]
        return [*on_tree, *on_spines]

    def mutants(self):
        made = (forgotten_factor_of_replace, contribution_bound_too_small, record_counted_twice,
                exact_total_of_a_protected_level, doubled_share_on_a_spine)  # fmt: skip
        return {make.__name__: make for make in made}

    def audits(self):
        return {
            "Gaussian, replace": lambda: audit(RHO_1, Neighbours.REPLACE),
            "Gaussian, add_remove": lambda: audit(RHO_1, Neighbours.ADD_REMOVE, NOBODY),
            "Laplace, replace": lambda: audit(Budget(epsilon=Fraction(2)), Neighbours.REPLACE),
        }

    def halved(self):
        honest = audit(RHO_1, Neighbours.REPLACE)
        return honest, audit(Budget(rho=Fraction(4)), Neighbours.REPLACE, stated=honest.stated)


WORLD = CountsWorld()
