"""The confidential half of a release of group sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.confidential.counts import TrueCounts
from trellis.ingest.public.registers import read_group_numbers, read_units
from trellis.ingest.reader import Source
from trellis.ingest.records.group_sizes import (
    RecordColumns,
    Sizes,
    TableColumns,
    sizes_from_records,
    sizes_from_table,
)
from trellis.measure import measure_counts
from trellis.measure.charged_noise import ChargedNoise
from trellis.spec.group_sizes import GroupSizesSpec
from trellis.spec.sections.planning import PriorSpec
from trellis.storage.measurements import write_measurements
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.sources import resolve_source
from trellis.workflow.public.facts import PublicFacts

PreparedSizes = Prepared[GroupSizesSpec, PublicFacts]


class ConfidentialGroupSizes:
    """Records with a register of groups, or a table of sizes with declared numbers of groups."""

    def tabulate(self, prepared: PreparedSizes, source: Source, register: Any) -> TrueCounts:
        spec, tree, data = prepared.spec, prepared.hierarchy, prepared.spec.data
        listed, width = spec.group_register, spec.hierarchy.code_width
        place = resolve_source(spec, listed.source, register, "group_register.source")
        sizes = Sizes(spec.sizes.cap, spec.sizes.top_code)
        if data.group is not None:
            assert listed.group is not None
            units = read_units(place, tree, listed.group, listed.area, width)
            columns = RecordColumns(data.group, data.area, data.quantity, data.max_quantity, width)
            return sizes_from_records(source, tree, units, columns, sizes)
        assert listed.groups is not None
        numbers = read_group_numbers(place, tree, listed.area, listed.groups, width)
        columns = TableColumns(data.area or "", data.size or "", data.groups or "", width)
        return sizes_from_table(source, tree, numbers, columns, sizes)

    def measure(
        self,
        into: Path,
        prepared: PreparedSizes,
        counts: TrueCounts,
        noise: ChargedNoise,
        tie_seed: int,
    ) -> None:
        del tie_seed
        write_measurements(into, measure_counts(prepared.plan, prepared.hierarchy, counts, noise))

    def are_those_of(self, prepared: PreparedSizes, counts: TrueCounts, prior: PriorSpec) -> bool:
        """Group sizes have no priors."""
        del prepared, counts, prior
        return False


CONFIDENTIAL = ConfidentialGroupSizes()
