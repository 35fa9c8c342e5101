"""Reads the records of a release of histograms, and checks them against the public rules."""

from __future__ import annotations

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import InputError
from trellis.ingest.duckdb import Source
from trellis.ingest.histograms import tabulate_long, tabulate_wide
from trellis.model.rules import rule_cells
from trellis.workflow.config.histograms import wide_cells
from trellis.workflow.prepare import Prepared


def read_histograms(prepared: Prepared, source: Source) -> TrueHistograms:
    """The true histograms of the leaves; records that break a rule are an error."""
    spec, plan, tree = prepared.spec, prepared.plan, prepared.hierarchy
    data, width = spec.data, spec.hierarchy.code_width
    assert data.area is not None
    if data.cells is not None:
        forms = data.cell_forms
        cells = {at: (name, forms[name]) for at, name in wide_cells(plan.schema, data.cells).items()}
        counts = tabulate_wide(source, tree, plan.schema, data.area, cells, width)
    else:
        columns = {name: name for name in plan.schema.names} | (data.attributes or {})
        counts = tabulate_long(source, tree, plan.schema, data.area, columns, data.count, width)
    _check_structural_zeros(prepared, counts)
    return counts


def _check_structural_zeros(prepared: Prepared, counts: TrueHistograms) -> None:
    plan = prepared.plan
    assert plan.histogram is not None
    totals = np.zeros(plan.schema.n_cells, dtype=np.int64)
    np.add.at(totals, counts.leaves.cell, counts.leaves.count)
    for rule in plan.histogram.structural_zeros:
        if totals[rule_cells(plan.schema, plan.histogram.ordered, rule)].any():
            raise InputError("TODO")
