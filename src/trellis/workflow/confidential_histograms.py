"""Reads the records of a release of histograms, and checks them against the public rules.

Records that break a rule are at fault. What is said about them names no rule, area or number:
these go to the confidential log, if there is one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.confidential.log import note
from trellis.errors import InputError, SpecError
from trellis.ingest.duckdb import Source
from trellis.ingest.histograms import tabulate_long, tabulate_wide
from trellis.model.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.queries import TOTAL, parse_query
from trellis.model.rules import rule_cells
from trellis.model.sparse_counts import SparseCounts
from trellis.planning.constraints import check_feasible
from trellis.workflow.config.histograms import wide_cells
from trellis.workflow.prepare import Prepared


def read_histograms(prepared: Prepared, source: Source) -> TrueHistograms:
    """The true histograms of the leaves; records that break a rule are an error."""
    spec, plan, tree = prepared.spec, prepared.plan, prepared.hierarchy
    data, width = spec.data, spec.hierarchy.code_width
    assert data.area is not None
    if data.cells is not None:
        forms, named = data.cell_forms, wide_cells(plan.schema, data.cells)
        cells = {at: (name, forms[name]) for at, name in named.items()}
        counts = tabulate_wide(source, tree, plan.schema, data.area, cells, width)
    else:
        columns = {name: name for name in plan.schema.names} | (data.attributes or {})
        counts = tabulate_long(source, tree, plan.schema, data.area, columns, data.count, width)
    check_rules(prepared, counts)
    return counts


def check_rules(prepared: Prepared, counts: TrueHistograms) -> None:
    """Counts that break a public rule are an error, if the rule binds the records."""
    _check_structural_zeros(prepared, counts)
    if prepared.constraints is not None:
        _check_constraints(prepared, prepared.constraints, counts)
        _check_exact_totals(prepared, prepared.constraints, counts)


def _check_structural_zeros(prepared: Prepared, counts: TrueHistograms) -> None:
    plan = prepared.plan
    assert plan.histogram is not None
    if not plan.histogram.zeros_bind_records:
        return
    totals = np.zeros(plan.schema.n_cells, dtype=np.int64)
    np.add.at(totals, counts.leaves.cell, counts.leaves.count)
    faults = [
        f"structural zero {rule!r}: {number} records contradict it"
        for rule in plan.histogram.structural_zeros
        if (number := int(totals[rule_cells(plan.schema, plan.histogram.ordered, rule)].sum()))
    ]
    if faults:
        raise InputError(
            "Some records contradict a structural zero. The records are at fault, or the rule: "
            f"{note('; '.join(faults))}."
        )


def _check_constraints(prepared: Prepared, stated: Constraints, counts: TrueHistograms) -> None:
    """True counts that keep all constraints prove that these can be kept together."""
    binding = [c for c in stated.linear if c.binds_records]
    if not binding:
        return
    tree = prepared.hierarchy
    levels = dict(zip(tree.level_names, counts.by_level(tree), strict=True))
    faults = []
    for constraint in binding:
        broken = _broken(constraint, levels[constraint.level], prepared)
        if broken:
            faults.append(f"constraint {constraint.label!r}: broken in {broken} places")
    if faults:
        raise InputError(
            "The records contradict a constraint, so that no release could keep it. The records "
            f"are at fault, or the public table: {note('; '.join(faults))}."
        )


def _check_exact_totals(prepared: Prepared, stated: Constraints, counts: TrueHistograms) -> None:
    """Rules that bind the output alone must leave room for the exact totals.

    The records are not asked. What is compared is public already: totals that the release states
    exactly, and that all neighbours share. So this refusal tells nothing else about the records.
    """
    plan, tree = prepared.plan, prepared.hierarchy
    assert plan.histogram is not None
    free = [c for c in stated.linear if not c.binds_records]
    if not plan.unprotected_totals or not (free or not plan.histogram.zeros_bind_records):
        return
    levels = dict(zip(tree.level_names, counts.by_level(tree), strict=True))
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
    try:
        check_feasible(replace(stated, linear=(*stated.linear, *exact)), tree, plan.schema)
    except SpecError as error:
        raise InputError(
            "Rules that bind the output cannot be kept together with the exact totals. Correct the "
            f"rules, or leave out exact totals: {note(str(error))}."
        ) from None


def _broken(constraint: LinearConstraint, cells: SparseCounts, prepared: Prepared) -> int:
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
    return int((stated & wrong).sum())
