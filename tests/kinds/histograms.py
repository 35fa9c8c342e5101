"""The world of histograms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pyarrow as pa

from histogram_release_worlds import SCHEMA, TREE, histogram_plan, shares, write_histogram_world
from kinds.world import COUNT, FRACTION, MUCH_NOISE, TEXT, Audit, Case, Mutant, Planted, World
from seeded_bits import SeededBits
from trellis.confidential.histograms import TrueHistograms
from trellis.ingest import long_tables
from trellis.ingest.records.histograms import tabulate_long
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_histograms
from trellis.model import Hierarchy, Plan, PlannedQuery
from trellis.model.plans.answers import histogram_answers
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import parse_query
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.histograms import MeasuredHistograms

LEAVES = TREE.codes("town").tolist()
STATE_OF = dict(zip(LEAVES, TREE.parents(2).tolist(), strict=True))
PLACES = [(leaf, *cell) for leaf, cell in product(LEAVES, SCHEMA.cells())]
GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))


@dataclass(frozen=True)
class HistogramCase(Case):
    """Over all query groups, with recodes, products and exact totals."""

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

    def measured(self, plan, content):
        return answered(tuple((q.level, q.query) for q in plan.queries), plan, content)

    def reached(self, plan) -> Fraction:
        """Under replace the root's total does not move, and the strategy still pays for it."""
        exact = {e.level for e in plan.queries if e.noise is None}
        free = sum(q.share for q in plan.queries if q.query == "total" and q.level in exact)
        return Fraction(1) - free


def states(content):
    return sorted(STATE_OF[leaf] for leaf, *_ in content)


@cache
def tabulated(content):
    """The true histograms when only this unit's records are in the data."""
    columns = {name: [row[i] for row in content] for i, name in enumerate(("town", "age", "sex"))}
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return tabulate_long(table, TREE, SCHEMA, "town", {"age": "age", "sex": "sex"}, None)


_ANSWERED: dict = {}


def answered(asked, plan, content):
    """Plans that ask the same share their answers."""
    if (asked, content) not in _ANSWERED:
        _ANSWERED[asked, content] = histogram_answers(plan, TREE, tabulated(content).leaves)
    return _ANSWERED[asked, content]


# -- mutants --------------------------------------------------------------------------------------

SMALL = HistogramCase(Neighbours.REPLACE, 1, (), GAUSSIAN)


def forgotten_factor_of_replace():
    plan = SMALL.plan()
    protection = replace(plan.protection, neighbours=Neighbours.ADD_REMOVE)
    return Mutant(SMALL, replace(plan, protection=protection))


def contribution_bound_too_small():
    return Mutant(replace(SMALL, m=2), SMALL.plan())


def exact_total_of_a_protected_level():
    plan = SMALL.plan()
    leak = PlannedQuery("state", "total", Fraction(0), None)
    return Mutant(SMALL, replace(plan, queries=(*plan.queries, leak)), says="exact and moves")


def overlapping_groups_of_a_query():
    """A query that counts some cells twice moves further than a partition."""

    def twice(plan, content):
        exact = SMALL.measured(plan, content)
        return [2 * a if q.query == "sex" else a for q, a in zip(plan.queries, exact, strict=True)]

    return Mutant(SMALL, SMALL.plan(), twice)


# -- the audit ------------------------------------------------------------------------------------

TRIALS = 40_000
MANY = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
CELLS = (0, SCHEMA.n_cells - 1)


def audit(budget: Budget, stated=None) -> Audit:
    """Every town is a trial: its person is in the first cell, or in the last."""
    strategy = shares({"town": {"sex": "1/4", "adult * sex": "1/4", "detailed": "1/2"}})
    only_towns = Shares({"town": Fraction(1)})
    plan = histogram_plan(MANY, budget=budget, strategy=strategy, shares=only_towns)
    asked = {q.query: parse_query(plan.schema, q.query) for q in plan.queries if q.noise}

    def measured(folder, plan, world, seed):
        one = np.ones(TRIALS, dtype=np.int64)
        cell = np.full(TRIALS, CELLS[world])
        truth = TrueHistograms.of(TRIALS, SCHEMA.n_cells, np.arange(TRIALS), cell, one)
        noise = ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))
        measure_histograms(folder, plan, MANY, truth, noise)
        read = MeasuredHistograms(folder, plan, MANY)
        return {query: read.read("town", query, 0, TRIALS) for query in asked}

    truths = tuple(
        {name: np.eye(q.n_cells, dtype=np.int64)[q.cell_of[cell]] for name, q in asked.items()}
        for cell in CELLS
    )
    return Audit(plan, truths, measured, stated or plan.privacy.accountant.delta)


USED = {"estimate": {"method": "topdown"}, "output": {"measurements": "used"}}
NO_RULES = {"structural_zeros": None, "constraints": None, "edit_rules": None}


class HistogramsWorld(World):
    """Records by all combinations of attributes."""

    kind = "histograms"
    unfit: ClassVar = {
        "used rows of a method that reads all": {"output__measurements": "used"},
        "rules of real estimates": {"estimate__method": "gls"},
        "a recode of nothing": {"recodes__adult__of": "nonsense"},
    }  # fmt: skip
    planted = Planted(
        spec={
            "release": "canary",
            "kind": "histograms",
            "dataset": "canary",
            "data": {"source": "records.parquet", "area": "area", "count": "people"},
            "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
            "schema": {"age": {"range": [0, 2]}, "sex": ["f", "m"]},
            "strategy": {"default": {"weights": {"total": 1, "sex": 1, "detailed": 2}}},
            "structural_zeros": ["age = 0 and sex = f"],
            "constraints": [{"name": "beds", "source": "beds.csv", "area": "area", "query": "sex",
                             "at_most": "beds"}],
            "edit_rules": ["age = 0 requires age > 0"],
            "output": {"tables": {"default": ["total", "sex"]}, "microdata": False},
            "privacy": MUCH_NOISE,
        },
        files={
            "areas.csv": "region,area\nr,a1\nr,a2\nr,a3\n",
            "beds.csv": "area,sex,beds\na1,m,90000000\n",
        },
        good={
            "area": ["a1", "a2", "a3"],
            "age": [1, 2, 1],
            "sex": ["m", "f", "m"],
            "people": [COUNT, 5_000_000, 2_000_000],
        },
        bad={
            "negative": {"people": [-COUNT, 1, 2]},
            "fractional": {"people": [FRACTION, 1.0, 2.0]},
            "text": {"people": [TEXT, "1", "2"]},
            "missing": {"people": [COUNT, None, 2]},
            "unknown category": {"sex": ["m", TEXT, "f"]},
            "unknown number": {"age": [COUNT, 1, 2]},
            "real category": {"age": [FRACTION, 1.0, 2.0]},
            "missing category": {"sex": ["m", None, "f"]},
            "unknown area": {"area": ["a1", TEXT, "a2"]},
            "structural zero": {"age": [1, 0, 1]},
            "constraint": {"people": [100 * COUNT, 1, 2]},
            "no column": {"sex_": ["m", "f", "m"], "sex": None},
        },
        measuring="measure_histograms",
        quoted=long_tables,
        ways=[
            {"estimate": {"method": "gls_topdown"}},
            {"estimate": {"method": "topdown"}},
            {"estimate": {"method": "gls"}, **NO_RULES},
            USED,
        ],
        crashes=[("measure_histograms", {}), ("sync_tree", {}), ("publish", {}),
                 ("measure_used_histograms", USED), ("publish", USED)],
    )  # fmt: skip

    def write(self, folder, **changes):
        return write_histogram_world(folder, **{"kind": "histograms"} | changes)

    def cases(self):
        return [
            HistogramCase(neighbours, m, unprotected, budget)
            for neighbours, m, unprotected, budget in product(
                Neighbours, (1, 2), ((), ("state",)), (GAUSSIAN, LAPLACE)
            )
            if not (unprotected and neighbours is Neighbours.ADD_REMOVE)
        ]

    def mutants(self):
        made = (forgotten_factor_of_replace, contribution_bound_too_small,
                exact_total_of_a_protected_level, overlapping_groups_of_a_query)  # fmt: skip
        return {make.__name__: make for make in made}

    def audits(self):
        return {
            "Gaussian": lambda: audit(GAUSSIAN),
            "Laplace": lambda: audit(Budget(epsilon=Fraction(2))),
        }

    def halved(self):
        honest = audit(GAUSSIAN)
        return honest, audit(Budget(rho=Fraction(4)), honest.stated)


WORLD = HistogramsWorld()
