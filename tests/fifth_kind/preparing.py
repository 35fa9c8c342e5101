"""From a spec of means to its plan."""

from __future__ import annotations

from fifth_kind.design import PARTS, MeansDesign
from fifth_kind.spec import MeansSpec
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.budget import noise_for_shares
from trellis.planning.kinds.counts import check_identifiable
from trellis.privacy.changes import Partition
from trellis.privacy.protection import Protection
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import PublicFacts


def plan_means(spec: MeansSpec, hierarchy: Hierarchy) -> Plan:
    """One table for every level with a share: sums, and what is missing to the bound."""
    privacy, bound, levels = spec.privacy, spec.data.at_most, hierarchy.level_names
    assert isinstance(privacy.shares, Shares)
    assert privacy.budget is not None
    budget, table, required = privacy.budget.value(), Partition(bound), spec.required_of_records
    protection = Protection(
        privacy.unit, privacy.neighbours, privacy.max_contribution, required=required
    )
    shares = privacy.shares.over(levels, levels)
    check_identifiable(spec.estimate.method, levels, levels, shares)
    noise = noise_for_shares(budget, shares, protection, table)
    return Plan(
        release=spec.release, dataset=spec.dataset, protection=protection, budget=budget,
        confidence=spec.output.confidence, levels=levels, sizes=hierarchy.sizes,
        areas=hierarchy.areas, hierarchy_digest=hierarchy_digest(hierarchy),
        schema=Schema({"part": list(PARTS)}),
        queries=tuple(
            PlannedQuery(level, DETAILED, share, noise[level], table)
            for level, share in shares.items()
        ),
        unprotected_totals=(), method=MeansDesign.method(spec.estimate.method),
        design=MeansDesign(bound),
    )  # fmt: skip


class PreparingMeans:
    """Means on the published tree; errors are not foreseen."""

    def prepare(self, spec: MeansSpec, hierarchy: Hierarchy, frames: Frames) -> Prepared:
        del frames
        return Prepared(spec, plan_means(spec, hierarchy), PublicFacts(hierarchy))

    def foresee(self, prepared: Prepared) -> Plan:
        return prepared.plan


PREPARING = PreparingMeans()
