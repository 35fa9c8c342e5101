"""The plan of a release of histograms: level share x query share, in exact fractions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trellis.errors import SpecError
from trellis.model.plans.kinds.histograms import COMPLETE, MOST_PASS_CELLS, HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL, Query, is_finer, named_query, parse_query
from trellis.model.tables.rules import edit_rule_cells, impossible_cells
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.budget import noise_for_shares
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.kinds.invariants import exact_levels

DEFAULT = "default"
"""In a strategy, or a list of tables: the levels that are not named."""

BYTES_PER_CELL = 100
"""Memory of one cell of one child while its family is solved."""

MOST_CELLS = 2**31 - 1
"""Positions of cells are kept in 32 bits."""


@dataclass(frozen=True, slots=True)
class HistogramRequest:
    """What the owner of the data asks for, besides what every release of counts has."""

    counts: CountsRequest
    schema: Schema
    ordered: tuple[str, ...]
    strategy: Mapping[str, Shares] | None
    tables: Mapping[str, Sequence[str]] | None
    microdata: bool
    structural_zeros: tuple[str, ...]
    edit_rules: tuple[str, ...]
    passes: tuple[str, ...]
    enforce_edit_rules: bool = True
    measurements: str = COMPLETE
    zeros_bind_records: bool = True


def plan_histograms(
    request: HistogramRequest, hierarchy: Hierarchy, hierarchy_digest: str, memory: int | None
) -> Plan:
    """Split the budget over levels and queries, and choose the noise of each.

    `memory` is what the machine has, in bytes; None if that is not known.
    """
    counts, schema, levels = request.counts, request.schema, hierarchy.level_names
    check_size(schema, hierarchy, memory)
    impossible = impossible_cells(schema, request.ordered, request.structural_zeros)
    if impossible.all():
        raise SpecError("structural_zeros rule out every cell. Take out a rule.")
    if clash := [name for name in schema.names if request.microdata and name in levels]:
        raise SpecError(
            f"output.microdata: {clash[0]!r} is a level and an attribute, and two columns cannot "
            "have the same name. Rename one of them."
        )
    for rule in request.edit_rules:
        given, needed = edit_rule_cells(schema, request.ordered, rule)
        if (given & ~impossible).any() and not (needed & ~impossible).any():
            raise SpecError(
                f"edit_rules: {rule[:120]!r} requires what structural_zeros rule out. If the other "
                "side is impossible as well, write that under structural_zeros."
            )
    exact = exact_levels(
        levels, counts.unprotected_totals, counts.neighbours, schema.n_cells, histogram=True
    )
    protection = counts.protection(exact)
    measurable = [name for name in levels if schema.n_cells > 1 or name not in exact]
    level_shares = counts.shares.over(levels, measurable)
    shares = query_shares(schema, request.strategy, level_shares, levels)
    check_identifiable(schema, counts.method, levels, measurable, shares)
    labels = {f"{level}\0{query}": share for (level, query), share in shares.items()}
    noise = noise_for_shares(counts.budget, labels, protection)
    measured = [
        PlannedQuery(level, query, share, noise[f"{level}\0{query}"])
        for (level, query), share in shares.items()
    ]
    return Plan(
        release=counts.release,
        dataset=counts.dataset,
        levels=levels,
        sizes=hierarchy.sizes,
        areas=hierarchy.areas,
        schema=schema,
        protection=protection,
        budget=counts.budget,
        queries=(*(PlannedQuery(name, TOTAL, Fraction(0), None) for name in exact), *measured),
        unprotected_totals=exact,
        method=HistogramDesign.method(counts.method),
        confidence=counts.confidence,
        hierarchy_digest=hierarchy_digest,
        design=HistogramDesign(
            tables=published_tables(schema, request.tables, levels),
            microdata=request.microdata,
            ordered=request.ordered,
            structural_zeros=request.structural_zeros,
            zeros_bind_records=request.zeros_bind_records,
            edit_rules=request.edit_rules,
            enforce_edit_rules=request.enforce_edit_rules,
            passes=_passes(schema, request.passes),
            measurements=request.measurements,
        ),
    )


# -- strategy -------------------------------------------------------------------------------------


def query_shares(
    schema: Schema,
    strategy: Mapping[str, Shares] | None,
    level_shares: Mapping[str, Fraction],
    levels: Sequence[str],
) -> dict[tuple[str, str], Fraction]:
    """The share of each query on each measured level; together they sum to exactly one."""
    strategy = strategy or {DEFAULT: Shares({DETAILED: Fraction(1)})}
    check_levels("strategy", strategy, levels)
    shares: dict[tuple[str, str], Fraction] = {}
    for level, level_share in level_shares.items():
        wish = strategy.get(level, strategy.get(DEFAULT))
        if wish is None:
            raise SpecError(
                f"strategy: level {level!r} has a share of the budget but no queries. Name them, "
                "or give default: {..} for all levels that are not named."
            )
        for query, share in within_level(schema, level, wish).items():
            shares[level, query] = level_share * share
    if unused := [name for name in strategy if name != DEFAULT and name not in level_shares]:
        raise SpecError(
            f"strategy: level {unused[0]!r} has queries but no share in privacy.shares."
        )
    return shares


def within_level(schema: Schema, level: str, wish: Shares) -> dict[str, Fraction]:
    """Query names, as the model writes them, with shares that sum to one."""
    if wish.values is None:
        raise SpecError(f"strategy.{level}: name queries with shares, such as {{detailed: 1}}.")
    named: dict[str, Fraction] = {}
    parsed: list[Query] = []
    for name, value in wish.values.items():
        query = named_query(schema, name)
        for other in parsed:
            if same_cells(query, other):
                raise SpecError(
                    f"strategy.{level}: {name!r} and {other.name!r} ask for the same cells. "
                    "Give one of them both shares."
                )
        if value <= 0:
            raise SpecError(
                f"strategy.{level}: the share of {name!r} must be positive; leave a query out to "
                "measure nothing there."
            )
        parsed.append(query)
        named[query.name] = value
    total = sum(named.values())
    if not wish.are_weights and total != 1:
        raise SpecError(
            f"strategy.{level}: shares sum to {total}, not to 1. Give fractions that sum to one, "
            "or write {weights: {..}} to have them scaled."
        )
    return {name: value / total for name, value in named.items()}


def same_cells(query: Query, other: Query) -> bool:
    return is_finer(query, other) and is_finer(other, query)


def check_identifiable(
    schema: Schema,
    method: str,
    levels: Sequence[str],
    measurable: Sequence[str],
    queries: Collection[tuple[str, str]],
) -> None:
    """Every cell of every area must be determined by what is measured, by level and query."""
    measured = {level for level, _ in queries}
    if levels[-1] not in measured:
        raise SpecError(
            f"privacy.shares: the last level, {levels[-1]!r}, must be measured; nothing else "
            "tells its areas apart. Give it a share, or end the hierarchy above it."
        )
    if method == "bottomup":
        raise SpecError(
            "estimate.method bottomup does not work with schema; use gls_topdown, topdown or gls."
        )
    finest = [query for level, query in queries if level == levels[-1]]
    if not any(parse_query(schema, query).n_cells == schema.n_cells for query in finest):
        raise SpecError(
            f"strategy: on the last level, {levels[-1]!r}, nothing tells all cells apart. Give "
            "the query detailed a share there."
        )
    if method == "topdown" and (missing := [name for name in measurable if name not in measured]):
        raise SpecError(
            f"estimate.method topdown works on measured levels only, but level {missing[0]!r} has "
            "no share. Give it one, or use gls_topdown."
        )
    on_root = [parse_query(schema, query).n_cells for level, query in queries if level == levels[0]]
    if method == "topdown" and schema.n_cells not in on_root:
        raise SpecError(
            f"strategy: estimate.method topdown needs a query on the first level, {levels[0]!r}, "
            "that tells all cells apart. Give the query detailed a share there, or use gls_topdown."
        )


# -- passes ---------------------------------------------------------------------------------------


def _passes(schema: Schema, wish: Sequence[str]) -> tuple[str, ...]:
    """Names of the marginals that each family fixes first, in this order."""
    parsed: list[Query] = []
    for name in wish:
        query = named_query(schema, name)
        if query.n_cells > MOST_PASS_CELLS:
            raise SpecError(
                f"estimate.passes: {name!r} has {query.n_cells:,} cells, but a pass may fix at "
                f"most {MOST_PASS_CELLS}. Fixing large marginals does harm: take it out."
            )
        for other in parsed:
            if same_cells(query, other):
                raise SpecError(
                    f"estimate.passes: {name!r} fixes the cells of {other.name!r} again. Name "
                    "each query once."
                )
        parsed.append(query)
    return tuple(query.name for query in parsed)


# -- tables ---------------------------------------------------------------------------------------


def published_tables(
    schema: Schema, wish: Mapping[str, Sequence[str]] | None, levels: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Pairs (level, query) to publish, root first; without a wish, the total of every level."""
    wish = wish if wish is not None else {DEFAULT: [TOTAL]}
    check_levels("output.tables", wish, levels)
    tables: dict[tuple[str, str], None] = {}
    for level in levels:
        for name in wish.get(level, wish.get(DEFAULT, ())):
            pair = level, named_query(schema, name).name
            if pair in tables:
                raise SpecError(f"output.tables.{level} lists {name!r} twice.")
            tables[pair] = None
    return tuple(tables)


def check_levels(key: str, given: Mapping[str, object], levels: Sequence[str]) -> None:
    if DEFAULT in levels:
        raise SpecError("A level cannot be called default. Rename it.")
    for name in given:
        if name != DEFAULT and name not in levels:
            raise SpecError(f"{key} names level {name!r}; the hierarchy has {', '.join(levels)}.")


def check_size(schema: Schema, hierarchy: Hierarchy, memory: int | None) -> None:
    """The largest family is held in memory, cell by cell. Call it before cells are listed."""
    if schema.n_cells > MOST_CELLS:
        # The number itself would fill lines.
        number = f"{schema.n_cells:,}" if schema.n_cells < 10**30 else "10^30 and more"
        raise SpecError(
            f"schema: {number} cells are more than the {MOST_CELLS:,} that an area may have. "
            "Take out or coarsen an attribute."
        )
    most = max((int(np.diff(start).max()) for start in hierarchy.child_start), default=1)
    needed = most * schema.n_cells * BYTES_PER_CELL
    if memory is not None and needed > memory:
        raise SpecError(
            f"schema: {schema.n_cells:,} cells for each of {most:,} children of one area take "
            f"about {needed / 1e9:,.1f} GB, but this machine has {memory / 1e9:,.1f} GB. Take out "
            "or coarsen an attribute, or put a level between that area and its children."
        )
