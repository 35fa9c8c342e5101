"""The outlook of a release of histograms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.model.tables.queries import parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.planning.allocation.targets import Target
from trellis.planning.forecast.outlook import Outlook
from trellis.planning.forecast.useless_margins import Margin
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.outlook.choose_strategy import weighed_tables
from trellis.workflow.outlook.histogram_priors import prior_counts_by_cell
from trellis.workflow.outlook.simulate_histograms import simulate_histograms
from trellis.workflow.outlook.simulation import Simulation
from trellis.workflow.preparing.kept_rules import PreparedHistograms
from trellis.workflow.progress import Progress


class OutlookOfHistograms:
    """Errors by level and published table."""

    def outlook(self, prepared: PreparedHistograms) -> Outlook | None:
        found = Outlook.of(prepared.plan, prepared.hierarchy)
        if found is None:
            return None
        return replace(found, aims=weighed_tables(prepared.spec, prepared.hierarchy))

    def table_counts(
        self, prepared: PreparedHistograms, margins: Sequence[Margin], prior: PriorSpec
    ) -> Iterator[NDArray[np.int64]]:
        tree, schema = prepared.hierarchy, prepared.plan.schema
        by_level = _leaves(prepared, prior).by_level(tree)
        for margin in margins:
            level, query = tree.index(margin.place), parse_query(schema, margin.query or "")
            counts = by_level[level].marginal(query.cell_of, query.n_cells)
            yield counts[~tree.passes_through[level]]

    def simulate(
        self,
        prepared: PreparedHistograms,
        prior: PriorSpec,
        releases: int,
        targets: Sequence[Target],
        progress: Progress,
    ) -> Simulation:
        leaves = _leaves(prepared, prior)
        return simulate_histograms(prepared, leaves, releases, targets, progress=progress)


def _leaves(prepared: PreparedHistograms, prior: PriorSpec) -> SparseCounts:
    schema = prepared.plan.schema
    return prior_counts_by_cell(prepared.spec, prior, prepared.hierarchy, schema)


OUTLOOK = OutlookOfHistograms()
