"""The plan of a release of flows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import SpecError
from trellis.model.plans.kinds.flows import FlowDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.flows import FlowTree
from trellis.planning.budget import noise_for_tables
from trellis.privacy.budget import Budget
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

_LONGEST_NAME = 200  # of a file


@dataclass(frozen=True, slots=True)
class FlowsRequest:
    """What the owner of the data asks for."""

    release: str
    dataset: str
    unit: str
    neighbours: Neighbours
    max_contribution: int
    exactly: bool
    distinct: bool
    budget: Budget
    shares: Shares
    method: str
    penalty: Fraction | None
    confidence: Fraction
    required: tuple[str, ...] = ()


def plan_flows(request: FlowsRequest, tree: FlowTree, schema: Schema, digest: str) -> Plan:
    """One table of pairs for every level; the grand total is exact only if it cannot move."""
    levels, trips = tree.shape.names, request.max_contribution
    if longest := [name for name in levels if len(name) > _LONGEST_NAME]:
        raise SpecError(
            f"The level {longest[0]!r} has a name that is too long: shorten the names of levels."
        )
    if len(set(levels)) != len(levels):
        raise SpecError(f"Two levels of the tree have the same name: {', '.join(levels)}.")
    exact_total = request.exactly and request.neighbours is Neighbours.REPLACE
    protection = Protection(request.unit, request.neighbours, trips, required=request.required)
    measured = levels[1:] if exact_total else levels
    shares = request.shares.over(levels, measured)
    if missing := [name for name in measured if name not in shares]:
        raise SpecError(
            f"privacy.shares: level {missing[0]!r} has no share. Flows are measured on every level "
            "of the tree; for fewer levels, leave levels out of the hierarchies."
        )
    tables = {
        name: FlowTable(_query(tree, level, distinct=request.distinct), trips)
        for level, name in enumerate(levels)
    }
    noise = noise_for_tables(request.budget, shares, protection, tables)
    return Plan(
        release=request.release,
        dataset=request.dataset,
        levels=levels,
        sizes=tree.sizes,
        areas=tree.sizes,
        schema=schema,
        protection=protection,
        budget=request.budget,
        queries=tuple(
            PlannedQuery(name, table.query, shares.get(name, Fraction(0)), noise.get(name), table)
            for name, table in tables.items()
        ),
        unprotected_totals=levels[:1] if exact_total else (),
        method=FlowDesign.method(request.method),
        confidence=request.confidence,
        hierarchy_digest=digest,
        design=FlowDesign(tree.shape, request.penalty),
    )


def _query(tree: FlowTree, level: int, *, distinct: bool) -> FlowQuery:
    if level == 0:
        return FlowQuery.GRAND_TOTAL
    if distinct and level >= tree.shape.leaf_pairs:
        return FlowQuery.DISTINCT_PAIRS
    return FlowQuery.PAIRS
