"""The confidential half of means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trellis.confidential.counts import TrueCounts
from trellis.ingest.checks import Fault, refuse
from trellis.ingest.columns import check_number
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Source
from trellis.ingest.records.counts import tabulate
from trellis.ingest.terms import Above, Linear, Number, Rows
from trellis.measure import measure_counts
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.trees.hierarchy import Hierarchy
from trellis.spec.sections.planning import PriorSpec
from trellis.storage.measurements import write_measurements
from trellis.workflow.preparing.prepared import Prepared


def refuse_above(source: Source, value: str, at_most: int) -> None:
    """The noise is made for values up to the bound."""
    with open_source(source, confidential=True) as reader:
        check_number(reader, value)
        rows = Rows({"value": Number(value)}, {}, {"added": Linear((("value", 1),))})
        words = f"Column {value!r} of {reader.name} has values above data.at_most. Bound them."
        refuse(reader, [Fault(words, Above("added", at_most), {"value": value})], rows)


def tabulate_means(
    source: Source, tree: Hierarchy, area: str, value: str, at_most: int, width: int | None = None
) -> TrueCounts:
    """Sums of the leaves, and what is missing to the bound."""
    cells = {"records": {}, "sum": {value: 1}}
    records, sums = tabulate(source, tree, area, cells, width).leaves.T
    refuse_above(source, value, at_most)
    return TrueCounts(np.column_stack([sums, at_most * records - sums]))


class ConfidentialMeans:
    """One row per record."""

    def tabulate(self, prepared: Prepared, source: Source, register: Any) -> TrueCounts:
        del register
        data, width = prepared.spec.data, prepared.spec.hierarchy.code_width
        tree = prepared.hierarchy
        return tabulate_means(source, tree, data.area, data.value, data.at_most, width)

    def measure(
        self, into: Path, prepared: Prepared, counts: TrueCounts, noise: ChargedNoise, tie_seed: int
    ) -> None:
        del tie_seed
        write_measurements(into, measure_counts(prepared.plan, prepared.hierarchy, counts, noise))

    def are_those_of(self, prepared: Prepared, counts: TrueCounts, prior: PriorSpec) -> bool:
        """Means have no priors."""
        del prepared, counts, prior
        return False


CONFIDENTIAL = ConfidentialMeans()
