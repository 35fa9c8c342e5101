"""The plan of a release of group sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import SpecError
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS, WIDEST_RATIO, GroupSizesDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import TOTAL
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.budget import noise_for_shares
from trellis.privacy.budget import Budget
from trellis.privacy.group_size_changes import SizeTable
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class GroupSizesRequest:
    """What the owner of the data asks for."""

    release: str
    dataset: str
    unit: str
    neighbours: Neighbours
    max_contribution: int
    max_quantity: int
    budget: Budget
    shares: Shares
    cap: int
    method: str
    weights: Mapping[str, Fraction] | None
    confidence: Fraction
    required: tuple[str, ...] = ()


def plan_group_sizes(
    request: GroupSizesRequest, hierarchy: Hierarchy, hierarchy_digest: str
) -> Plan:
    """One table of sizes 0 .. cap for every level with a share; numbers of groups are exact."""
    levels = hierarchy.level_names
    query = SIZE_METHODS[request.method].query
    protection = Protection(
        request.unit, request.neighbours, request.max_contribution, required=request.required
    )
    shares = request.shares.over(levels, levels)
    if levels[-1] not in shares:
        raise SpecError(
            f"privacy.shares: the last level, {levels[-1]!r}, must be measured; nothing else "
            "tells its areas apart. Give it a share, or end the hierarchy above it."
        )
    # Past the cap a quantity makes no difference.
    table = SizeTable(query, min(request.max_quantity, request.cap))
    noise = noise_for_shares(request.budget, shares, protection, table)
    exact = [PlannedQuery(name, TOTAL, Fraction(0), None) for name in levels]
    measured = [
        PlannedQuery(name, query, share, noise[name], table) for name, share in shares.items()
    ]
    return Plan(
        release=request.release,
        dataset=request.dataset,
        levels=levels,
        sizes=hierarchy.sizes,
        areas=hierarchy.areas,
        schema=Schema({"size": [str(size) for size in range(request.cap + 1)]}),
        protection=protection,
        budget=request.budget,
        queries=tuple(exact + measured),
        unprotected_totals=levels,
        method=GroupSizesDesign.method(request.method),
        confidence=request.confidence,
        hierarchy_digest=hierarchy_digest,
        design=GroupSizesDesign(_checked(_weights(request, levels, shares))),
    )


def _weights(
    request: GroupSizesRequest, levels: tuple[str, ...], shares: Mapping[str, Fraction]
) -> tuple[Fraction, ...]:
    """How much each level counts in sums of squares: as declared, or by the precision of its noise.

    The variance falls with the share (Gaussian noise) or its square (Laplace). A level that is not
    measured has weight 0.
    """
    if request.weights is None:
        power = 2 if request.budget.is_pure else 1
        most = max(shares.values())
        return tuple((shares.get(name, Fraction(0)) / most) ** power for name in levels)
    if missing := [name for name in shares if name not in request.weights]:
        raise SpecError(f"estimate.weights: level {missing[0]!r} is measured but has no weight.")
    for name, weight in request.weights.items():
        if name not in shares:
            raise SpecError(f"estimate.weights: level {name!r} is not measured, or does not exist.")
        if weight <= 0:
            raise SpecError(f"estimate.weights: the weight of level {name!r} must be positive.")
    return tuple(request.weights.get(name, Fraction(0)) for name in levels)


def _checked(weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    if max(weights) > WIDEST_RATIO * min(weight for weight in weights if weight):
        raise SpecError(
            f"Levels differ in their weights by more than {WIDEST_RATIO:.0e}, which no fit can "
            "keep. Even out privacy.shares, leave a level out, or state estimate.weights."
        )
    return weights
