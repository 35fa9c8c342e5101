"""The confidential half of a release of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trellis.confidential.counts import TrueCounts
from trellis.ingest.reader import Source
from trellis.ingest.records.counts import tabulate
from trellis.measure import measure_counts
from trellis.measure.charged_noise import ChargedNoise
from trellis.spec.counts import CountsSpec
from trellis.spec.sections.planning import PriorSpec
from trellis.storage.measurements import write_measurements
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import PublicFacts

PreparedCounts = Prepared[CountsSpec, PublicFacts]


class ConfidentialCounts:
    """Records by cell, or cells of a wide table."""

    def tabulate(self, prepared: PreparedCounts, source: Source, register: Any) -> TrueCounts:
        del register
        data = prepared.spec.data
        cells = data.cell_forms or {"total": {} if data.count is None else {data.count: 1}}
        width = prepared.spec.hierarchy.code_width
        return tabulate(source, prepared.hierarchy, data.area, cells, width)

    def measure(
        self,
        into: Path,
        prepared: PreparedCounts,
        counts: TrueCounts,
        noise: ChargedNoise,
        tie_seed: int,
    ) -> None:
        del tie_seed
        spine = prepared.interests.spine
        measured = measure_counts(prepared.plan, prepared.hierarchy, counts, noise, spine)
        write_measurements(into, measured)

    def are_those_of(self, prepared: PreparedCounts, counts: TrueCounts, prior: PriorSpec) -> bool:
        # Optimisers take a while to import; by now a spec with a prior has imported them.
        from trellis.workflow.outlook.choose_budget import prior_counts

        given = prepared.spec, prior, prepared.hierarchy, prepared.plan.schema
        return np.array_equal(counts.leaves, prior_counts(*given))


CONFIDENTIAL = ConfidentialCounts()
