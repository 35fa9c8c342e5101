"""Spines: gains and losses on two states, foreseen and seen, and the whole nation's speed.

    python benchmarks/spines.py                 all of it; the nation takes a few minutes and 6 GB
    python benchmarks/spines.py states          without the nation

Data: ../shared/data/census_blocks_2020_{ri,nm,us}.parquet.
"""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow.parquet as pq

from trellis.confidential.counts import TrueCounts
from trellis.estimate.best_linear import solve_tree
from trellis.estimate.evidence import Evidence
from trellis.ingest.public.areas import AreaColumns, read_category
from trellis.ingest.public.hierarchies import from_prefixes
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.trees.areas import entity_distances
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.spine import bypass, regroup_leaves
from trellis.planning.spine.counts import plan_counts_on_spine
from trellis.planning.spine.effects import entity_effects
from trellis.planning.spine.steps import Bypass, RegroupLeaves
from trellis.privacy.bits import OsRandom
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.hierarchies import hierarchy_digest
from trellis.storage.spines import spine_digest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PREFIXES = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
RELEASES = 20
STATES = {
    "ri": (
        ("place", "cousub", "sduni"),
        {"place": 0.50, "tract": 1.08, "county": 1.03, "block": 1.0},
    ),
    "nm": (("place", "vtd"), {"place": 0.36, "tract": 1.08, "county": 1.03, "block": 1.0}),
}
WITHIN = {"vtd": "county"}
"""Codes of voting districts are unique within a county only, those of places within a state."""


def main() -> None:
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    if not (DATA / "census_blocks_2020_us.parquet").is_file():
        print(f"skipped: {DATA} has no census files")
        return
    for state, (names, goals) in STATES.items():
        one_state(state, names, goals)
    if sys.argv[1:] != ["states"]:
        nation()


def one_state(state: str, names: tuple[str, ...], goals: dict[str, float]) -> None:
    """Totals, zCDP with equal shares: block groups redrawn, parents with one child bypassed."""
    path, hierarchy, categories = read_state(state, names)
    request = request_for(state, Budget(rho=Fraction(1)))
    begin = perf_counter()
    made = plan_counts_on_spine(
        request, hierarchy, Schema({"cell": ["total"]}), hierarchy_digest(hierarchy),
        [RegroupLeaves(names, 12), Bypass()], categories, spine_digest,
    )  # fmt: skip
    effects = entity_effects(
        made.plan, hierarchy, made.spine, list(categories.values()), made.conventional
    )
    seconds = perf_counter() - begin
    print(f"\n{state.upper()}: {hierarchy.sizes[-1]:,} blocks, zCDP, equal shares, block groups "
          f"redrawn by {', '.join(names)}, fanout_cutoff 12 ({seconds:.1f} s)")  # fmt: skip
    seen = seen_errors(made, hierarchy, path, effects)
    print(f"{'areas':>14} {'number':>8} {'distance':>15} {'before':>8} {'after':>8} {'ratio':>6} "
          f"{'goal':>6} {'seen/expected':>14}")  # fmt: skip
    for effect, ratio_seen in zip(effects, seen, strict=True):
        mean = effect.means()
        goal = goals.get(mean.name)
        word = "" if goal is None else f"{goal:.2f}" + ("" if mean.ratio <= goal else "!")
        print(
            f"{mean.name:>14} {mean.entities:>8,} "
            f"{mean.distance_before:>6.1f} -> {mean.distance_after:>5.1f} "
            f"{mean.error_before:>8.3f} {mean.error_after:>8.3f} {mean.ratio:>6.3f} {word:>6} "
            + (f"{ratio_seen:>14.3f}" if ratio_seen is not None else f"{'exact':>14}")
        )


def read_state(state: str, names: Sequence[str]) -> tuple[Path, Hierarchy, dict[str, Category]]:
    """The file, the hierarchy and the areas of interest of a state."""
    path = DATA / f"census_blocks_2020_{state}.parquet"
    hierarchy = from_prefixes(path, "geoid", PREFIXES, 15)
    categories = {
        name: read_category(
            path, hierarchy, name, AreaColumns("geoid", name, "block", 15, WITHIN.get(name))
        )
        for name in names
    }
    return path, hierarchy, categories


def request_for(state: str, budget: Budget) -> CountsRequest:
    """Totals with equal shares."""
    return CountsRequest(
        state, state, "person", Neighbours.REPLACE, 1, budget, Shares(), (), "gls_topdown",
        Fraction(9, 10),
    )  # fmt: skip


def seen_errors(made, hierarchy, path: Path, effects) -> list[float | None]:
    """Root mean square error of `RELEASES` releases of true counts, over the expected one."""
    table = pq.read_table(path, columns=["geoid", "pop"]).sort_by("geoid")
    truth = table["pop"].to_numpy().astype(np.int64)
    claim = Claim("run", "token", made.plan.privacy)
    squares = [np.zeros(effect.category.size) for effect in effects]
    for _ in range(RELEASES):
        measured = measure_counts(
            made.plan,
            hierarchy,
            TrueCounts(truth[:, np.newaxis]),
            ChargedNoise(made.plan, claim, OsRandom()),
            made.spine,
        )
        solved = solve_tree(made.spine.hierarchy, Evidence.of(measured))
        error = np.empty(truth.size)
        error[made.spine.leaf_order] = solved.final[-1][:, 0]
        error -= truth
        for total, effect in zip(squares, effects, strict=True):
            inside = effect.category.member >= 0
            sums = np.bincount(
                effect.category.member[inside], error[inside], minlength=effect.category.size
            )
            total += sums**2
    found = []
    for total, effect in zip(squares, effects, strict=True):
        expected = float((effect.error_after**2).sum())
        found.append(np.sqrt(total.sum() / RELEASES / expected) if expected > 1e-9 else None)
    return found


def nation() -> None:
    path = DATA / "census_blocks_2020_us.parquet"
    begin = perf_counter()
    hierarchy = from_prefixes(path, "geoid", PREFIXES, 15, ("nation", "US"))
    read = perf_counter() - begin
    print(f"\nUS: {hierarchy.sizes[-1]:,} blocks; the hierarchy is read in {read:.0f} s")
    begin = perf_counter()
    categories: dict[str, Category] = {}
    for name, within, outside in (("place", "state", ("-1",)), ("vtd", "county", ())):
        columns = AreaColumns("geoid", name, "block", 15, within, outside)
        categories[name] = read_category(path, hierarchy, name, columns)
    print(f"areas read in {perf_counter() - begin:.0f} s; memory {peak():.1f} GB")
    far = timed("distances of all places and voting districts", 60, lambda: {
        name: entity_distances(hierarchy, category) for name, category in categories.items()
    })  # fmt: skip

    def spine():
        made = regroup_leaves(hierarchy, categories["place"], 12)
        shares = [Fraction(0), *[Fraction(1, 5)] * 5]
        return made.then(bypass(made.hierarchy, shares, "discrete_gaussian", keep_levels=1))

    made = timed("regroup by place and bypass", 120, spine)
    tree = made.hierarchy
    sizes = [f"{n:,} {name}" for name, n in zip(tree.level_names, tree.sizes, strict=True)]
    print(f"spine: {', '.join(sizes)}")
    for name, category in categories.items():
        near = entity_distances(made.hierarchy, category.carried(made.leaf_order))
        before = far[name]
        print(
            f"{name:>8}: {category.size:,} entities, mean distance {before.mean():.1f} -> "
            f"{near.mean():.1f}, largest {before.max()} -> {near.max()}"
        )
    print(f"peak memory {peak():.1f} GB (goal 6)")


def timed(what: str, goal: float, work):
    begin = perf_counter()
    result = work()
    seconds = perf_counter() - begin
    print(f"{what}: {seconds:.1f} s (goal {goal:g}), memory {peak():.1f} GB", flush=True)
    return result


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
