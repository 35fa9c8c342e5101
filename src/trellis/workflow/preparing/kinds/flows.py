"""From a spec of flows to its plan."""

from __future__ import annotations

from typing import Any

from trellis.errors import SpecError
from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.flows import FlowTree, Side
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.forecast.expected_error import with_own_noise
from trellis.planning.kinds.flows import FlowsRequest, plan_flows
from trellis.spec.flows import FlowsSpec
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.areas import read_areas
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import FlowFacts


def prepare_flows(
    spec: FlowsSpec, origins: Hierarchy, frames: Frames
) -> Prepared[FlowsSpec, FlowFacts]:
    """The plan; without destinations of their own, they are the origins."""
    privacy, destinations = spec.privacy, _destinations(spec, frames.destinations, frames.records)
    assert privacy.budget is not None
    assert isinstance(privacy.shares, Shares)
    request = FlowsRequest(
        release=spec.release,
        dataset=spec.dataset,
        unit=privacy.unit,
        neighbours=privacy.neighbours,
        max_contribution=privacy.max_contribution,
        exactly=spec.has_exact_number,
        distinct=spec.trips.distinct,
        budget=privacy.budget.value(),
        shares=privacy.shares,
        method=spec.estimate.method,
        penalty=spec.estimate.penalty,
        confidence=spec.output.confidence,
        required=spec.required_of_records,
    )
    schema = Schema(spec.attributes or {"cell": ["total"]})
    tree = FlowTree.of(Side(spec.tree), origins, destinations or origins, schema)
    digests = [hierarchy_digest(side) for side in (origins, destinations) if side is not None]
    plan = plan_flows(request, tree, schema, "+".join(digests))
    return Prepared(spec, plan, FlowFacts(origins, destinations=destinations))


def _destinations(spec: FlowsSpec, frame: Any, records: Any) -> Hierarchy | None:
    if spec.destinations is not None:
        return read_areas(spec, spec.destinations, frame, records, "destinations")
    if frame is not None:
        raise SpecError(
            "destinations: a frame was given, but the spec has no such key to say how to read it."
        )
    return None


class PreparingFlows:
    """Flows between one hierarchy and itself, or another."""

    def prepare(
        self, spec: FlowsSpec, hierarchy: Hierarchy, frames: Frames
    ) -> Prepared[FlowsSpec, FlowFacts]:
        return prepare_flows(spec, hierarchy, frames)

    def foresee(self, prepared: Prepared) -> Plan:
        return with_own_noise(prepared.plan)


PREPARING = PreparingFlows()
