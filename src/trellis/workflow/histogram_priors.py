"""Public counts of an earlier or assumed state, by level and cell of a histogram."""

from __future__ import annotations

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.errors import SpecError
from trellis.ingest.public.priors import read_prior
from trellis.ingest.records.histograms import tabulate_long
from trellis.model.hierarchy import Hierarchy
from trellis.model.schema import Schema
from trellis.model.sparse_counts import SparseCounts
from trellis.workflow.choose_budget import prior_place
from trellis.workflow.config import Spec
from trellis.workflow.config.histograms import wide_cells
from trellis.workflow.config.planning import PriorSpec
from trellis.workflow.config.public_files import refuse_confidential


def prior_counts_by_cell(
    spec: Spec, prior: PriorSpec, hierarchy: Hierarchy, schema: Schema
) -> TrueHistograms:
    """Counts of all leaves, from a file that is laid out like the records."""
    refuse_confidential(spec, prior)
    data = spec.data
    if data.cells is not None and prior.count is None:
        forms = data.cell_forms
        position = wide_cells(schema, data.cells)
        place = prior_place(spec, prior, [forms[name] for name in position.values()])
        dense = read_prior(place, hierarchy, spec.hierarchy.code_width)
        leaf, column = np.nonzero(dense)
        cell = np.array(list(position), dtype=np.int64)[column]
        return TrueHistograms.of(len(dense), schema.n_cells, leaf, cell, dense[leaf, column])
    if prior.crosswalk is not None:
        raise SpecError(
            "prior.crosswalk goes with a table of cells, read like data.cells. Carry the rows over "
            "to the areas of the hierarchy first."
        )
    columns = {name: name for name in schema.names} | (data.attributes or {})
    source, area = spec.resolve(prior.source), prior.area or data.area or ""
    count = prior.count or data.count
    return tabulate_long(source, hierarchy, schema, area, columns, count, spec.hierarchy.code_width)


def prior_histograms(
    spec: Spec, prior: PriorSpec, hierarchy: Hierarchy, schema: Schema
) -> list[SparseCounts]:
    """The same for every level, root first."""
    return prior_counts_by_cell(spec, prior, hierarchy, schema).by_level(hierarchy)
