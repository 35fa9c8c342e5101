"""From a spec of flows to its plan."""

from __future__ import annotations

from trellis.model.flows import FlowTree
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.model.schema import Schema
from trellis.planning.budget.shares import Shares
from trellis.planning.flows import FlowsRequest, plan_flows
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec
from trellis.workflow.config.flows import has_exact_number
from trellis.workflow.config.requirements import required_of_records


def flow_plan(spec: Spec, origins: Hierarchy, destinations: Hierarchy | None) -> Plan:
    """The plan of a release of flows; without destinations, they are the origins."""
    privacy = spec.privacy
    schema = Schema(spec.attributes or {"cell": ["total"]})
    assert spec.tree is not None
    assert spec.estimator is not None
    assert privacy.budget is not None
    assert isinstance(privacy.shares, Shares)
    tree = FlowTree.of(spec.tree, origins, destinations or origins, schema)
    request = FlowsRequest(
        release=spec.release,
        dataset=spec.dataset,
        unit=privacy.unit,
        neighbours=privacy.neighbours,
        max_contribution=privacy.max_contribution,
        exactly=has_exact_number(spec),
        distinct=spec.trips.distinct,
        budget=privacy.budget.value(),
        shares=privacy.shares,
        estimator=spec.estimator,
        penalty=spec.estimate.penalty,
        confidence=spec.output.confidence,
        required=required_of_records(spec),
    )
    digests = [hierarchy_digest(side) for side in (origins, destinations) if side is not None]
    return plan_flows(request, tree, schema, "+".join(digests))
