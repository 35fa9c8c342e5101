"""The world of flows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flow_worlds import MODES, ONE_CELL, dense, flows_plan, tree_of, write_flow_world
from kinds.world import COUNT, FRACTION, MUCH_NOISE, TEXT, Audit, Case, Mutant, Planted, World
from seeded_bits import SeededBits
from trellis.confidential.flows import TrueFlows
from trellis.ingest.records import flows as ingest
from trellis.ingest.records.flows import TripColumns, TripRules, read_flows
from trellis.measure.charged_noise import ChargedNoise
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.workflow.confidential.flow_descent import measure_flows

TREE = Hierarchy.from_paths([("r", "a", "1"), ("r", "a", "2"), ("r", "b", "3")],
                            ["nation", "state", "town"])  # fmt: skip
TOWNS = ("1", "2", "3")
PAIRS = list(product(TOWNS, TOWNS))
GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))


@dataclass(frozen=True)
class FlowsCase(Case):
    """All trips of one unit, on top of a background."""

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

    def pairs(self):
        contents = list(self.contents())
        if self.neighbours is Neighbours.ADD_REMOVE:
            return (((), trips) for trips in contents)
        return combinations(contents, 2)

    def measured(self, plan, content):
        return tabulated(self, content)

    def reached(self, plan) -> Fraction:
        """Under replace, a total that moves leaves one side of the change empty.

        And two states do not hold the distinct pairs that every level would need to move most.
        """
        tight = self.exactly and not self.distinct
        return Fraction(self.neighbours is Neighbours.ADD_REMOVE or tight)


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
def tabulated(case, trips):
    tree, flows = case.flow_tree(), read(case.modes, trips)
    return [dense(flows, tree, level) for level in range(len(tree.shape.names))]


# -- mutants --------------------------------------------------------------------------------------

DISTINCT = FlowsCase("destination", Neighbours.ADD_REMOVE, 2, False, True, GAUSSIAN)
SEVERAL = FlowsCase("destination", Neighbours.REPLACE, 2, False, False, GAUSSIAN)


def published_sensitivity():
    """Distinct pairs of towns are taken to be distinct on every level, as in the literature."""
    plan = DISTINCT.plan()
    distinct = FlowTable(FlowQuery.DISTINCT_PAIRS, 2)
    everywhere = [replace(q, table=distinct) if "-to-" in q.level and q.query == "pairs"
                  else q for q in plan.queries]  # fmt: skip
    return Mutant(DISTINCT, replace(plan, queries=tuple(everywhere)))


def exact_total_of_at_most_m_trips():
    return Mutant(SEVERAL, replace(SEVERAL, exactly=True).plan(), says="exact and moves")


def contribution_bound_too_small():
    case = replace(SEVERAL, exactly=True)
    return Mutant(case, replace(case, m=1).plan())


def forgotten_factor_of_replace():
    case = replace(SEVERAL, m=1)
    return Mutant(case, replace(case, neighbours=Neighbours.ADD_REMOVE).plan())


# -- the audit ------------------------------------------------------------------------------------

TRIALS = 40_000
MANY = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
ONE = Hierarchy.from_paths([("all",)], ["everywhere"])
TO_TOWNS = tree_of(ONE, MANY)
OTHERS = 5000


def audit(rho: Fraction, stated=None) -> Audit:
    """Flows from everywhere to towns. Every town is a trial: a worker goes there, or not."""
    small = Fraction(1, 10**6)  # of the total, which is not attacked here
    shares = Shares({"everywhere-to-nation": small, "everywhere-to-town": 1 - small})
    plan = flows_plan(TO_TOWNS, budget=Budget(rho=rho), shares=shares, exactly=False,
                      neighbours=Neighbours.ADD_REMOVE)  # fmt: skip

    def measured(folder, plan, world, seed):
        towns = np.arange(TRIALS, dtype=np.int32)
        trips = np.full(TRIALS, OTHERS + 1 - world)
        flows = TrueFlows(np.zeros(TRIALS, np.int32), towns, trips)
        noise = ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))
        measure_flows(folder, plan, TO_TOWNS, flows, noise, 0, workers=1)
        path = folder / "level=everywhere-to-town" / "query=pairs.parquet"
        return {"pairs": pq.ParquetFile(path).read()["value"].to_numpy()[:, np.newaxis]}

    def delta(epsilon):
        return replace(plan.privacy, charges=plan.privacy.charges[1:]).accountant.delta(epsilon)

    truths = ({"pairs": np.array([OTHERS + 1])}, {"pairs": np.array([OTHERS])})
    return Audit(plan, truths, measured, stated or delta, "everywhere-to-town")


class FlowsWorld(World):
    """Trips between areas."""

    kind = "flows"
    unfit: ClassVar = {
        "a penalty of a method that has none": {"estimate": {"method": "l2", "penalty": 1}},
        "origin and destination in one column": {"data__destination": "home"},
        "a cap without units": {"trips": {"above": "cap", "number": "at_most"}},
    }  # fmt: skip
    planted = Planted(
        spec={
            "release": "canary",
            "kind": "flows",
            "dataset": "canary",
            "data": {"source": "records.parquet", "origin": "home", "destination": "work",
                     "count": "people"},
            "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
            "trips": {"number": "at_most"},
            "privacy": MUCH_NOISE,
        },
        files={"areas.csv": "region,area\nr,a1\nr,a2\nr,a3\n"},
        good={"home": ["a1", "a1", "a2"], "work": ["a2", "a3", "a2"], "people": [COUNT, 12, 31]},
        bad={
            "negative": {"people": [-COUNT, 1, 2]},
            "fractional": {"people": [FRACTION, 1.0, 2.0]},
            "text": {"people": [TEXT, "1", "2"]},
            "missing count": {"people": [COUNT, None, 2]},
            "unknown origin": {"home": ["a1", TEXT, "a2"]},
            "unknown destination": {"work": ["a1", TEXT, "a2"]},
            "no destination": {"work": ["a1", None, "a2"]},
            "a region is no leaf": {"work": ["a1", "r", "a2"]},
            "too large": {"people": [2**60 + COUNT, 1, 2]},
        },
        measuring="measure_flows",
        quoted=ingest,
        ways=[{"estimate": {"method": name}} for name in ("chebyshev", "sparse")],
        crashes=[(s, {}) for s in ("measure_flows", "sync_tree", "folder_digest", "publish")],
    )  # fmt: skip

    def write(self, folder, **changes):
        return write_flow_world(folder, **changes)

    def cases(self):
        usual = product(
            ("destination", "origin"), Neighbours, (1, 2), (True, False), (True, False), (GAUSSIAN,)
        )
        return [
            *(FlowsCase(*rest) for rest in usual),
            FlowsCase("destination", Neighbours.REPLACE, 1, True, False, LAPLACE),
            FlowsCase("destination", Neighbours.ADD_REMOVE, 2, False, True, LAPLACE),
            FlowsCase("destination", Neighbours.REPLACE, 1, True, False, GAUSSIAN, modes=True),
            FlowsCase("origin", Neighbours.ADD_REMOVE, 2, False, True, GAUSSIAN, modes=True),
        ]

    def mutants(self):
        made = (published_sensitivity, exact_total_of_at_most_m_trips,
                contribution_bound_too_small, forgotten_factor_of_replace)  # fmt: skip
        return {make.__name__: make for make in made}

    def audits(self):
        return {"Gaussian, add_remove": lambda: audit(Fraction(1))}

    def halved(self):
        honest = audit(Fraction(1))
        return honest, audit(Fraction(2), honest.stated)


WORLD = FlowsWorld()
