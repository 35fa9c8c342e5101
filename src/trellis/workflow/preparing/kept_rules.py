"""Whether counts of histograms keep the public rules, and where they do not.

The counts are the truth where a release is made: what is found here then goes to the confidential
log and nowhere else. Where a release is simulated they are public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.tables.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import TOTAL, parse_query
from trellis.model.tables.rules import rule_cells
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.planning.feasibility.constraints import check_feasible
from trellis.spec.histograms import HistogramsSpec
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import BoundedFacts

PreparedHistograms = Prepared[HistogramsSpec, BoundedFacts]

MOST_LINES = 10_000
"""Places that are listed for one rule."""


def contradicted_zeros(
    prepared: PreparedHistograms, leaves: SparseCounts
) -> dict[str, NDArray[np.bool_]]:
    """Structural zeros that bind the records and are not kept, with their cells."""
    schema, design = prepared.plan.schema, prepared.plan.design_as(HistogramDesign)
    if not design.zeros_bind_records:
        return {}
    totals = np.zeros(schema.n_cells, dtype=np.int64)
    np.add.at(totals, leaves.cell, leaves.count)
    cells = {rule: rule_cells(schema, design.ordered, rule) for rule in design.structural_zeros}
    return {rule: inside for rule, inside in cells.items() if totals[inside].any()}


def impossible_lines(
    prepared: PreparedHistograms, leaves: SparseCounts, faults: Mapping[str, NDArray[np.bool_]]
) -> Iterator[str]:
    """Lines about the areas and cells that must be empty and are not."""
    schema, codes = prepared.plan.schema, prepared.hierarchy.codes(prepared.hierarchy.leaf_level)
    leaf = np.repeat(np.arange(leaves.n_areas), np.diff(leaves.start))
    for rule, cells in faults.items():
        at = np.flatnonzero(cells[leaves.cell])
        yield f"structural zero {rule!r}: {leaves.count[at].sum()} records contradict it"
        for i in at[:MOST_LINES]:
            place = np.unravel_index(leaves.cell[i], schema.shape)
            labels = [names[at] for names, at in zip(schema.categories, place, strict=True)]
            yield f"  area {str(codes[leaf[i]])!r}, {', '.join(labels)}: {leaves.count[i]} records"


def broken_constraints(prepared: PreparedHistograms, leaves: SparseCounts) -> list[str]:
    """Lines about constraints that bind the records and are broken.

    Counts that keep all constraints prove that these can be kept together.
    """
    bounds, tree = prepared.facts.constraints, prepared.hierarchy
    binding = [c for c in bounds.linear if c.binds_records] if bounds is not None else []
    if not binding:
        return []
    levels = dict(zip(tree.level_names, leaves.by_level(tree), strict=True))
    return [
        line
        for constraint in binding
        for line in _broken(constraint, levels[constraint.level], prepared)
    ]


def check_against_totals(prepared: PreparedHistograms, leaves: SparseCounts) -> None:
    """Rules that bind the output alone must leave room for the exact totals: else a `SpecError`.

    The records are not asked. What is compared is public already: totals that the release states
    exactly, and that all neighbours share. So this refusal tells nothing else about the records.
    """
    plan, tree, bounds = prepared.plan, prepared.hierarchy, prepared.facts.constraints
    if bounds is None or not plan.unprotected_totals or not _binds_output(prepared, bounds):
        return
    levels = dict(zip(tree.level_names, leaves.by_level(tree), strict=True))
    total = parse_query(plan.schema, TOTAL)
    exact = [
        LinearConstraint(
            f"exact totals of {name}",
            name,
            total.name,
            Sense.EQUAL,
            levels[name].marginal(total.cell_of, total.n_cells),
        )
        for name in plan.unprotected_totals
    ]
    check_feasible(replace(bounds, linear=(*bounds.linear, *exact)), tree, plan.schema)


def _binds_output(prepared: PreparedHistograms, bounds: Constraints) -> bool:
    free = any(not constraint.binds_records for constraint in bounds.linear)
    return free or not prepared.plan.design_as(HistogramDesign).zeros_bind_records


def _broken(
    constraint: LinearConstraint, cells: SparseCounts, prepared: PreparedHistograms
) -> Iterator[str]:
    """Lines about where a constraint is broken; none if it is kept."""
    query = parse_query(prepared.plan.schema, constraint.query)
    answer = cells.marginal(query.cell_of, query.n_cells)
    if constraint.group_of is not None:
        member = constraint.group_of != ALONE
        total = np.zeros_like(constraint.bound)
        np.add.at(total, constraint.group_of[member], answer[member])
        answer = total
    stated = constraint.bound != NO_BOUND
    wrong = {
        Sense.EQUAL: answer != constraint.bound,
        Sense.AT_MOST: answer > constraint.bound,
        Sense.AT_LEAST: answer < constraint.bound,
    }[constraint.sense]
    unit, cell = np.nonzero(stated & wrong)
    if unit.size:
        yield f"constraint {constraint.label!r}: broken in {unit.size} places"
    for u, c in zip(unit[:MOST_LINES].tolist(), cell.tolist(), strict=False):
        labels = [
            f.labels[at]
            for f, at in zip(query.factors, np.unravel_index(c, query.shape), strict=True)
        ]
        areas = [u] if constraint.group_of is None else np.flatnonzero(constraint.group_of == u)
        codes = prepared.hierarchy.codes(constraint.level)[areas].tolist()
        yield (
            f"  {', '.join([*map(repr, codes), *labels])}: {answer[u, c]} records, "
            f"{constraint.sense} {constraint.bound[u, c]} stated"
        )
