"""The tree of flows that a plan was made for."""

from __future__ import annotations

from trellis.model.plans.plan import Plan
from trellis.model.trees.flows import FlowTree
from trellis.model.trees.hierarchy import Hierarchy


def flow_tree(plan: Plan, origins: Hierarchy, destinations: Hierarchy | None) -> FlowTree:
    """With one hierarchy for both sides, unless there is another for the destinations."""
    assert plan.flow is not None
    return FlowTree.of(plan.flow.tree, origins, destinations or origins, plan.schema)
