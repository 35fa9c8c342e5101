"""Reads the records of a release of histograms, and checks them against the public rules.

Records that break a rule are at fault. What is said about them names no rule, area or number:
these go to the confidential log, if there is one.
"""

from __future__ import annotations

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.confidential.log import note
from trellis.errors import InputError
from trellis.ingest.duckdb import Source
from trellis.ingest.histograms import tabulate_long, tabulate_wide
from trellis.model.constraints import ALONE, NO_BOUND, LinearConstraint, Sense
from trellis.model.queries import parse_query
from trellis.model.rules import rule_cells
from trellis.model.sparse_counts import SparseCounts
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
    """Counts that break a public rule are an error."""
    _check_structural_zeros(prepared, counts)
    _check_constraints(prepared, counts)


def _check_structural_zeros(prepared: Prepared, counts: TrueHistograms) -> None:
    plan = prepared.plan
    assert plan.histogram is not None
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


def _check_constraints(prepared: Prepared, counts: TrueHistograms) -> None:
    """True counts that keep all constraints prove that these can be kept together."""
    if prepared.constraints is None or not prepared.constraints.linear:
        return
    tree = prepared.hierarchy
    levels = dict(zip(tree.level_names, counts.by_level(tree), strict=True))
    faults = []
    for constraint in prepared.constraints.linear:
        broken = _broken(constraint, levels[constraint.level], prepared)
        if broken:
            faults.append(f"constraint {constraint.label!r}: broken in {broken} places")
    if faults:
        raise InputError(
            "The records contradict a constraint, so that no release could keep it. The records "
            f"are at fault, or the public table: {note('; '.join(faults))}."
        )


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
