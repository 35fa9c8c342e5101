"""The plan of a release of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import SpecError
from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.budget import noise_for_shares
from trellis.planning.kinds.invariants import exact_levels
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


@dataclass(frozen=True, slots=True)
class CountsRequest:
    """What the owner of the data asks for."""

    release: str
    dataset: str
    unit: str
    neighbours: Neighbours
    max_contribution: int
    budget: Budget
    shares: Shares
    unprotected_totals: tuple[str, ...]
    method: str
    confidence: Fraction
    required: tuple[str, ...] = ()

    def protection(self, exact: Sequence[str]) -> Protection:
        """Who is protected if the totals of these levels, root first, are published exactly."""
        within = exact[-1] if len(exact) > 1 else None
        return Protection(self.unit, self.neighbours, self.max_contribution, within, self.required)


def plan_counts(
    request: CountsRequest, hierarchy: Hierarchy, schema: Schema, hierarchy_digest: str
) -> Plan:
    """Split the budget and choose the noise of every level; errors are not yet foreseen."""
    levels = hierarchy.level_names
    exact = exact_levels(levels, request.unprotected_totals, request.neighbours, schema.n_cells)
    protection = request.protection(exact)
    measurable = measurable_levels(levels, exact, schema.n_cells, request.method)
    shares = request.shares.over(levels, measurable)
    check_identifiable(request.method, levels, measurable, shares)

    noise = noise_for_shares(request.budget, shares, protection)
    invariants = [PlannedQuery(name, TOTAL, Fraction(0), None) for name in exact]
    query = TOTAL if schema.n_cells == 1 else DETAILED
    measured = [PlannedQuery(name, query, share, noise[name]) for name, share in shares.items()]
    queries = tuple(invariants + measured)
    return Plan(
        release=request.release,
        dataset=request.dataset,
        levels=levels,
        sizes=hierarchy.sizes,
        areas=hierarchy.areas,
        schema=schema,
        protection=protection,
        budget=request.budget,
        queries=queries,
        unprotected_totals=exact,
        method=CountsDesign.method(request.method),
        confidence=request.confidence,
        hierarchy_digest=hierarchy_digest,
        design=CountsDesign(),
    )


def measurable_levels(
    levels: Sequence[str], exact: Sequence[str], n_cells: int, method: str
) -> list[str]:
    """The levels on which a measurement is of use."""
    if method == "bottomup":
        return list(levels[-1:])
    # With several cells the exact total of the root says nothing about its cells.
    return [name for name in levels if n_cells > 1 or name not in exact]


def check_identifiable(
    method: str, levels: Sequence[str], measurable: Sequence[str], shares: dict[str, Fraction]
) -> None:
    """Every cell of every area must be determined by what is measured."""
    if levels[-1] not in shares:
        raise SpecError(
            f"privacy.shares: the last level, {levels[-1]!r}, must be measured; nothing else "
            "tells its areas apart. Give it a share, or end the hierarchy above it."
        )
    if method == "topdown" and (missing := [name for name in measurable if name not in shares]):
        raise SpecError(
            f"estimate.method topdown works on measured levels only, but level {missing[0]!r} has "
            "no share. Give it one, or use gls_topdown."
        )
