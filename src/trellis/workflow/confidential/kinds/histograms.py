"""Reads the records of a release of histograms, and checks them against the public rules.

Records that break a rule are at fault. What is said about them names no rule, area or number:
these go to the confidential log, if there is one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import InputError, SpecError
from trellis.ingest.confidential_log import note
from trellis.ingest.reader import Source
from trellis.ingest.records.histograms import tabulate_long, tabulate_wide
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_histograms
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.spec.histograms import wide_cells
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.confidential.histogram_descent import measure_used_histograms
from trellis.workflow.preparing.kept_rules import (
    PreparedHistograms,
    broken_constraints,
    check_against_totals,
    contradicted_zeros,
    impossible_lines,
)


class ConfidentialHistograms:
    """Records by all attributes; those that break a rule that binds them are refused."""

    def tabulate(
        self, prepared: PreparedHistograms, source: Source, register: Any
    ) -> TrueHistograms:
        del register
        spec, plan, tree = prepared.spec, prepared.plan, prepared.hierarchy
        data, width = spec.data, spec.hierarchy.code_width
        if data.cells is not None:
            forms, named = data.cell_forms, wide_cells(plan.schema, data.cells)
            cells = {at: (name, forms[name]) for at, name in named.items()}
            counts = tabulate_wide(source, tree, plan.schema, data.area, cells, width)
        else:
            columns = {name: name for name in plan.schema.names} | (data.attributes or {})
            counts = tabulate_long(source, tree, plan.schema, data.area, columns, data.count, width)
        _check_rules(prepared, counts.leaves)
        return counts

    def measure(
        self,
        into: Path,
        prepared: PreparedHistograms,
        counts: TrueHistograms,
        noise: ChargedNoise,
        tie_seed: int,
    ) -> None:
        plan, tree = prepared.plan, prepared.hierarchy
        if plan.design_as(HistogramDesign).skips_unused:
            bounds = prepared.facts.constraints
            measure_used_histograms(into, plan, tree, counts, bounds, noise, tie_seed)
        else:
            measure_histograms(into, plan, tree, counts, noise)

    def are_those_of(
        self, prepared: PreparedHistograms, counts: TrueHistograms, prior: PriorSpec
    ) -> bool:
        # Optimisers take a while to import; by now a spec with a prior has imported them.
        from trellis.workflow.outlook.histogram_priors import prior_counts_by_cell

        one, schema = counts.leaves, prepared.plan.schema
        other = prior_counts_by_cell(prepared.spec, prior, prepared.hierarchy, schema)
        pairs = ((one.start, other.start), (one.cell, other.cell), (one.count, other.count))
        return all(np.array_equal(*pair) for pair in pairs)


def _check_rules(prepared: PreparedHistograms, leaves: SparseCounts) -> None:
    """Records that break a public rule which binds them are an error."""
    if faults := contradicted_zeros(prepared, leaves):
        raise InputError(
            "Some records contradict a structural zero. The records are at fault, or the rule. "
            f"Which ones: {note(impossible_lines(prepared, leaves, faults))}."
        )
    if lines := broken_constraints(prepared, leaves):
        raise InputError(
            "The records contradict a constraint, so that no release could keep it. The records "
            f"are at fault, or the public table. Which ones: {note(lines)}."
        )
    try:
        check_against_totals(prepared, leaves)
    except SpecError as error:
        raise InputError(
            "Rules that bind the output cannot be kept together with the exact totals. Correct the "
            f"rules, or leave out exact totals: {note(error.faults)}."
        ) from None


CONFIDENTIAL = ConfidentialHistograms()
