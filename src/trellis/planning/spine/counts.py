"""The plan of counts that are measured on a spine.

The noise is chosen last: the tree is final, every path's shares sum to one, and what the accountant
prices are the kinds of paths that the tree has, in the worst pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import AreaPlan, Category, ancestors
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine, SpinePlan, distinct_paths
from trellis.planning.budget.noise import noise_for_paths
from trellis.planning.kinds.counts import CountsRequest, check_identifiable, plan_counts
from trellis.planning.spine.reduction import Reduction
from trellis.planning.spine.steps import GroupLevel, Step, build, check_steps

Digest = Callable[[Hierarchy, NDArray[np.int64], Sequence[NDArray]], str]


@dataclass(frozen=True, slots=True, eq=False)
class SpineCounts:
    """The plan, its spine, and the plan of the same release without a spine to compare with.

    `shares` are those of the levels, before any was moved.
    """

    plan: Plan
    spine: Spine
    conventional: Plan
    shares: Mapping[str, Fraction]


def plan_counts_on_spine(
    request: CountsRequest,
    hierarchy: Hierarchy,
    schema: Schema,
    hierarchy_digest: str,
    steps: Sequence[Step],
    categories: Mapping[str, Category],
    digest: Digest,
) -> SpineCounts:
    """Build the spine, move the shares, then choose the noise."""
    if request.method in ("topdown", "bottomup"):
        raise SpecError(
            f"estimate.method {request.method} has no use for a spine. Use gls_topdown or gls."
        )
    conventional = conventional_plan(request, hierarchy, schema, hierarchy_digest, steps)
    exact = conventional.unprotected_totals
    known = [*categories, *hierarchy.level_names[1:-1]]
    check_steps(hierarchy, steps, known, len(exact))

    def level_shares(levels: tuple[str, ...]) -> Mapping[str, Fraction]:
        measurable = [name for name in levels if schema.n_cells > 1 or name not in exact]
        shares = request.shares.over(levels, measurable)
        check_identifiable(request.method, levels, measurable, shares)
        return shares

    mechanism = "discrete_laplace" if request.budget.is_pure else "discrete_gaussian"
    keep_levels = len(exact) if schema.n_cells == 1 else 0
    built = build(hierarchy, steps, categories, level_shares, mechanism, keep_levels)
    spine, spine_plan = describe(built, [step.in_words() for step in steps], digest)

    noise = noise_for_paths(
        request.budget,
        [spine_plan.path_shares(path) for path in spine_plan.paths],
        conventional.protection,
    )
    measured = [
        PlannedQuery(name, conventional.cell_query, share, noise[share], share_class=number)
        for name, shares in zip(spine_plan.levels, spine_plan.shares, strict=True)
        for number, share in enumerate(shares)
        if share
    ]
    invariants = [query for query in conventional.queries if query.noise is None]
    plan = replace(conventional, queries=(*invariants, *measured), spine=spine_plan)
    return SpineCounts(plan, spine, conventional, level_shares(built.hierarchy.level_names))


def conventional_plan(
    request: CountsRequest,
    hierarchy: Hierarchy,
    schema: Schema,
    hierarchy_digest: str,
    steps: Sequence[Step],
) -> Plan:
    """The same release without a spine; what only levels of the spine had goes to the others."""
    added = {step.group_name for step in steps if isinstance(step, GroupLevel)}
    values = request.shares.values
    if values is not None and added & set(values):
        kept = {name: share for name, share in values.items() if name not in added}
        request = replace(request, shares=Shares(kept, are_weights=True))
    return plan_counts(request, hierarchy, schema, hierarchy_digest)


def describe(built: Reduction, steps: Sequence[str], digest: Digest) -> tuple[Spine, SpinePlan]:
    """The tree with its noise classes, and what the plan says about it."""
    tree, given = built.hierarchy, built.node_shares
    assert given is not None
    classes, shares = [], []
    for level in given.classes:
        used, number = np.unique(level, return_inverse=True)
        order = np.argsort([given.values[i] for i in used.tolist()])
        rank = np.argsort(order).astype(np.int16)
        classes.append(rank[number])
        shares.append(tuple(given.values[used[i]] for i in order.tolist()))
    spine = Spine(tree, built.leaf_order, tuple(classes))
    plan = SpinePlan(
        levels=tree.level_names,
        sizes=tree.sizes,
        shares=tuple(shares),
        nodes=tuple(tuple(np.bincount(c).tolist()) for c in classes),
        paths=tuple(distinct_paths(tree, classes)),
        keeps_whole=keeps_whole(built.original, spine),
        steps=tuple(steps),
        digest=digest(tree, built.leaf_order, classes),
    )
    return spine, plan


def keeps_whole(published: Hierarchy, spine: Spine) -> tuple[int, ...]:
    """For each published level, on how many levels of the spine its areas lie in one node each."""
    tree = spine.hierarchy
    nodes = [ancestors(tree, level) for level in range(tree.n_levels)]
    numbers = []
    for level in range(published.n_levels):
        area = ancestors(published, level)[spine.leaf_order]
        some = np.empty(published.size(level), dtype=np.int64)
        whole = 0
        for node in nodes:
            some[area] = node  # the node of one of the area's leaves
            if not (some[area] == node).all():
                break
            whole += 1
        numbers.append(whole)
    return tuple(numbers)


def with_areas(
    plan: Plan, categories: Sequence[Category], digest: Callable[[Category], str]
) -> Plan:
    """The plan that also releases these areas."""
    return replace(plan, interests=tuple(AreaPlan(c.name, c.size, digest(c)) for c in categories))
