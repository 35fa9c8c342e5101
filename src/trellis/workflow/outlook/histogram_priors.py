"""Public counts of an earlier or assumed state, by level and cell of a histogram."""

from __future__ import annotations

import numpy as np

from trellis.errors import SpecError
from trellis.ingest.long_tables import histograms_of_rows
from trellis.ingest.public.priors import read_prior
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.spec.histograms import HistogramsSpec, wide_cells
from trellis.spec.public_files import refuse_confidential
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.outlook.choose_budget import prior_place


def prior_counts_by_cell(
    spec: HistogramsSpec, prior: PriorSpec, hierarchy: Hierarchy, schema: Schema
) -> SparseCounts:
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
        return SparseCounts.grouped(len(dense), schema.n_cells, leaf, cell, dense[leaf, column])
    if prior.crosswalk is not None:
        raise SpecError(
            "prior.crosswalk goes with a table of cells, read like data.cells. Carry the rows over "
            "to the areas of the hierarchy first."
        )
    columns = {name: name for name in schema.names} | (data.attributes or {})
    source, area = spec.resolve(prior.source), prior.area or data.area
    count = prior.count or data.count
    width = spec.hierarchy.code_width
    return histograms_of_rows(source, hierarchy, schema, area, columns, count, width)
