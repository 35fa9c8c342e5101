"""Reads the records of a release of histograms, and checks them against the public rules.

Records that break a rule are at fault. What is said about them names no rule, area or number:
these go to the confidential log, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.histograms import TrueHistograms
from trellis.confidential.log import note
from trellis.errors import InputError, SpecError
from trellis.ingest.checks import MOST_LOGGED
from trellis.ingest.reader import Source
from trellis.ingest.records.histograms import tabulate_long, tabulate_wide
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
    faults = {
        rule: cells
        for rule in plan.histogram.structural_zeros
        if totals[cells := rule_cells(plan.schema, plan.histogram.ordered, rule)].any()
    }
    if faults:
        raise InputError(
            "Some records contradict a structural zero. The records are at fault, or the rule. "
            f"Which ones: {note(_impossible(prepared, counts.leaves, faults))}."
        )


def _impossible(
    prepared: Prepared, leaves: SparseCounts, faults: Mapping[str, NDArray[np.bool_]]
) -> Iterator[str]:
    """Lines of the log: the areas and cells that must be empty and are not."""
    schema, codes = prepared.plan.schema, prepared.hierarchy.codes(prepared.hierarchy.leaf_level)
    leaf = np.repeat(np.arange(leaves.n_areas), np.diff(leaves.start))
    for rule, cells in faults.items():
        at = np.flatnonzero(cells[leaves.cell])
        yield f"structural zero {rule!r}: {leaves.count[at].sum()} records contradict it"
        for i in at[:MOST_LOGGED]:
            place = np.unravel_index(leaves.cell[i], schema.shape)
            labels = [names[at] for names, at in zip(schema.categories, place, strict=True)]
            yield f"  area {str(codes[leaf[i]])!r}, {', '.join(labels)}: {leaves.count[i]} records"


def _check_constraints(prepared: Prepared, stated: Constraints, counts: TrueHistograms) -> None:
    """True counts that keep all constraints prove that these can be kept together."""
    binding = [c for c in stated.linear if c.binds_records]
    if not binding:
        return
    tree = prepared.hierarchy
    levels = dict(zip(tree.level_names, counts.by_level(tree), strict=True))
    faults = [
        line
        for constraint in binding
        for line in _broken(constraint, levels[constraint.level], prepared)
    ]
    if faults:
        raise InputError(
            "The records contradict a constraint, so that no release could keep it. The records "
            f"are at fault, or the public table. Which ones: {note(faults)}."
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
            f"rules, or leave out exact totals: {note(error.faults)}."
        ) from None


def _broken(constraint: LinearConstraint, cells: SparseCounts, prepared: Prepared) -> Iterator[str]:
    """Lines of the log: where a constraint is broken; none if it is kept."""
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
    for u, c in zip(unit[:MOST_LOGGED].tolist(), cell.tolist(), strict=False):
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
