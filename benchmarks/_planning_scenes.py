"""What the planning benchmarks share: the demo state, plans for it, verdicts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import yaml

from trellis.model import Hierarchy, Schema
from trellis.model.plans.shares import Shares
from trellis.planning.allocation.choose import Scene
from trellis.planning.kinds.counts import CountsRequest, plan_counts
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection
from trellis.samples.demo import SPEC, block_codes, block_populations
from trellis.spec import Spec
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import PublicFacts

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVELS = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
ONE_CELL = Schema({"cell": ["total"]})
RELEASES = 20


def verdict(text: str, target: str, met: bool) -> bool:
    """Print a number beside its target."""
    print(f"{text} (target: {target}): {'met' if met else 'MISSED'}", flush=True)
    return met


def demo_state() -> tuple[Hierarchy, np.ndarray]:
    rng = np.random.default_rng(2020)
    codes = block_codes(rng, 50_000)
    people = block_populations(rng, 50_000)
    tree = Hierarchy.from_paths([[c[:n] for n in LEVELS.values()] for c in codes], list(LEVELS))
    order = np.argsort(codes)
    return tree, people[order][:, np.newaxis]


def prepared(tree: Hierarchy, budget: Budget, shares: Shares) -> Prepared:
    request = CountsRequest(
        "demo", "demo", "person", Neighbours.REPLACE, 1, budget, shares, (), "gls_topdown",
        Fraction(9, 10),
    )  # fmt: skip
    plan = plan_counts(request, tree, ONE_CELL, "")
    return Prepared(Spec.parse(yaml.safe_load(SPEC)), plan, PublicFacts(tree))


def demo_scene(tree: Hierarchy) -> Scene:
    slots = tuple((level, "total") for level in list(LEVELS)[1:])
    protection = Protection("person", Neighbours.REPLACE, 1)
    return Scene(tree, ONE_CELL, protection, ("state",), "discrete_gaussian", slots)
