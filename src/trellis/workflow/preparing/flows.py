"""From a spec of flows to its plan."""

from __future__ import annotations

from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.flows import FlowTree
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.kinds.flows import FlowsRequest, plan_flows
from trellis.spec import Spec
from trellis.spec.flows import has_exact_number
from trellis.spec.requirements import required_of_records
from trellis.storage.hierarchies import hierarchy_digest


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
