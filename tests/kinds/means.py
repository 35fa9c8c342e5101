"""The world of means, the toy kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pyarrow as pa

from fifth_kind.confidential import tabulate_means
from fifth_kind.preparing import plan_means
from fifth_kind.registered import register
from fifth_kind.spec import MeansSpec
from fifth_kind.world import SPEC, write_means_world
from kinds.world import COUNT, FRACTION, MUCH_NOISE, TEXT, Audit, Case, Mutant, Planted, World
from seeded_bits import SeededBits
from trellis.confidential.counts import TrueCounts
from trellis.ingest.records import counts as ingest
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Plan
from trellis.model.plans.answers import answers
from trellis.privacy.changes import PARTITION
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from worlds import changed

TREE = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1")], ["nation", "state", "town"]
)
TOWNS = TREE.codes("town").tolist()
GAUSSIAN = {"privacy__mechanism": "discrete_gaussian", "privacy__budget": {"rho": 1}}
LAPLACE = {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1}}


def means_plan(tree: Hierarchy, **changes) -> Plan:
    return plan_means(MeansSpec(**changed(SPEC, **changes)), tree)


@dataclass(frozen=True)
class MeansCase(Case):
    """All values of all records of one unit."""

    neighbours: Neighbours
    m: int
    at_most: int
    pure: bool = False

    def plan(self) -> Plan:
        return means_plan(
            TREE, data__at_most=self.at_most, privacy__neighbours=str(self.neighbours),
            privacy__max_contribution=self.m, **LAPLACE if self.pure else GAUSSIAN,
        )  # fmt: skip

    def pairs(self):
        records = list(product(TOWNS, range(self.at_most + 1)))
        contents = [c for n in range(self.m + 1) for c in combinations_with_replacement(records, n)]
        if self.neighbours is Neighbours.ADD_REMOVE:
            return [(content, ()) for content in contents]
        return [(a, b) for a, b in product(contents, contents) if len(a) == len(b)]

    def measured(self, plan, content):
        return answers(plan, TREE, tabulated(content, self.at_most).leaves)


@cache
def tabulated(content, at_most):
    towns, hours = [town for town, _ in content], [value for _, value in content]
    table = pa.table({"town": pa.array(towns, pa.string()), "hours": pa.array(hours, pa.int64())})
    return tabulate_means(table, TREE, "town", "hours", at_most)


# -- mutants --------------------------------------------------------------------------------------

SMALL = MeansCase(Neighbours.REPLACE, 1, 2)


def forgotten_factor_of_replace():
    return Mutant(SMALL, replace(SMALL, neighbours=Neighbours.ADD_REMOVE).plan())


def contribution_bound_too_small():
    return Mutant(replace(SMALL, m=2), SMALL.plan())


def values_priced_as_counts():
    """The bound is forgotten: the noise is that of a count."""
    plan = replace(SMALL, at_most=1).plan()
    return Mutant(SMALL, plan)


def table_priced_as_a_partition():
    plan = SMALL.plan()
    cheap = [replace(q, table=PARTITION) for q in plan.queries]
    return Mutant(SMALL, replace(plan, queries=tuple(cheap)))


# -- the audit ------------------------------------------------------------------------------------

TRIALS = 40_000
MANY = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
HERE, THERE = (3, 0), (0, 3)
"""The person of a town states the bound, or nothing."""


def audit(rho: int, stated=None) -> Audit:
    """The accountant certifies a bound of values up to 12, so that it is tight."""
    plan = means_plan(
        MANY, hierarchy__columns=["nation", "town"], data__at_most=3,
        privacy__shares={"town": 1}, privacy__budget={"rho": rho},
    )  # fmt: skip

    def measured(folder, plan, world, seed):
        counts = TrueCounts(np.tile(np.array((HERE, THERE)[world]), (TRIALS, 1)))
        noise = ChargedNoise(plan, Claim("run", "token", plan.privacy), SeededBits(seed))
        return {"detailed": measure_counts(plan, MANY, counts, noise).answer("town", "detailed")[0]}

    truths = ({"detailed": np.array(HERE)}, {"detailed": np.array(THERE)})
    return Audit(plan, truths, measured, stated or plan.privacy.accountant.delta)


class MeansWorld(World):
    """Means of a bounded value."""

    kind = "means"
    unfit: ClassVar = {"a bound below one": {"data__at_most": 0}}
    planted = Planted(
        spec={
            "release": "canary",
            "kind": "means",
            "dataset": "canary",
            "data": {"source": "records.parquet", "area": "area", "value": "people",
                     "at_most": 8_000_000},
            "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
            "privacy": {**MUCH_NOISE, "max_contribution": 1},
        },
        files={"areas.csv": "region,area\nr,a1\nr,a2\nr,a3\n"},
        good={"area": ["a1", "a2", "a3"], "people": [COUNT, 5_000_000, 2_000_000]},
        bad={
            "negative": {"people": [-COUNT, 1, 2]},
            "fractional": {"people": [FRACTION, 1.0, 2.0]},
            "text": {"people": [TEXT, "1", "2"]},
            "above the bound": {"people": [2 * COUNT, 10 * COUNT, 2]},
            "unknown area": {"area": ["a1", TEXT, "a3"]},
        },
        measuring="measure_counts",
        quoted=ingest,
        ways=[{"estimate": {"method": name}} for name in ("gls_topdown", "gls")],
        crashes=[(step, {}) for step in ("measure_counts", "write_measurements", "publish")],
    )  # fmt: skip

    def register(self, patch):
        register(patch)

    def write(self, folder, **changes):
        return write_means_world(folder, **changes)

    def cases(self):
        return [
            MeansCase(neighbours, m, at_most, pure)
            for neighbours, m, at_most, pure in product(
                Neighbours, (1, 2), (1, 2, 3), (False, True)
            )
            if m * at_most <= 4
        ]

    def mutants(self):
        made = (forgotten_factor_of_replace, contribution_bound_too_small, values_priced_as_counts,
                table_priced_as_a_partition)  # fmt: skip
        return {make.__name__: make for make in made}

    def audits(self):
        return {"Gaussian, replace": lambda: audit(1)}

    def halved(self):
        honest = audit(1)
        return honest, audit(4, honest.stated)


WORLD = MeansWorld()
