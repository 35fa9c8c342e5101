"""From a spec of group sizes to its plan."""

from __future__ import annotations

from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.planning.kinds.group_sizes import GroupSizesRequest, plan_group_sizes
from trellis.spec.group_sizes import GroupSizesSpec
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import PublicFacts


def prepare_group_sizes(
    spec: GroupSizesSpec, hierarchy: Hierarchy
) -> Prepared[GroupSizesSpec, PublicFacts]:
    privacy = spec.privacy
    assert privacy.budget is not None
    assert isinstance(privacy.shares, Shares)
    request = GroupSizesRequest(
        release=spec.release,
        dataset=spec.dataset,
        unit=privacy.unit,
        neighbours=privacy.neighbours,
        max_contribution=privacy.max_contribution,
        max_quantity=spec.data.max_quantity,
        budget=privacy.budget.value(),
        shares=privacy.shares,
        cap=spec.sizes.cap,
        method=spec.estimate.method,
        weights=spec.estimate.weights,
        confidence=spec.output.confidence,
        required=spec.required_of_records,
    )
    plan = plan_group_sizes(request, hierarchy, hierarchy_digest(hierarchy))
    return Prepared(spec, plan, PublicFacts(hierarchy))


class PreparingGroupSizes:
    """Groups by size; the register is read with the records."""

    def prepare(
        self, spec: GroupSizesSpec, hierarchy: Hierarchy, frames: Frames
    ) -> Prepared[GroupSizesSpec, PublicFacts]:
        del frames
        return prepare_group_sizes(spec, hierarchy)

    def foresee(self, prepared: Prepared) -> Plan:
        return with_expected_errors(prepared.plan, prepared.hierarchy)


PREPARING = PreparingGroupSizes()
