"""From the keys of a spec to the plan of a release of histograms."""

from __future__ import annotations

import os

from trellis.errors import SpecError, StructureError
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.planning.counts import CountsRequest
from trellis.planning.histograms import HistogramRequest, plan_histograms
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec


def plan_histogram_spec(spec: Spec, counts: CountsRequest, hierarchy: Hierarchy) -> Plan:
    """The plan; what is wrong with queries and rules is an error of the spec."""
    assert spec.attributes is not None
    request = HistogramRequest(
        counts=counts,
        schema=spec.cell_schema(),
        ordered=tuple(name for name, a in spec.attributes.items() if a.ordered),
        strategy=spec.strategy,
        tables=spec.output.tables,
        microdata=spec.output.microdata,
        structural_zeros=spec.structural_zeros or (),
        edit_rules=spec.edit_rules or (),
    )
    try:
        return plan_histograms(request, hierarchy, hierarchy_digest(hierarchy), _memory())
    except StructureError as error:
        raise SpecError(str(error)) from None


def _memory() -> int | None:
    """Bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
