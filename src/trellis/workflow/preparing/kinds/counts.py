"""From a spec of counts to its plan, on a spine if the spec describes one."""

from __future__ import annotations

from collections.abc import Mapping

from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.spine.effects import with_effects
from trellis.privacy.budget import Budget
from trellis.spec.counts import CountsSpec, TabularSpec
from trellis.spec.sections.planning import OptimalSharesSpec
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.spines import plan_with_interests, read_categories
from trellis.workflow.public.facts import PublicFacts


def prepare_counts(
    spec: CountsSpec, hierarchy: Hierarchy, frames: Frames
) -> Prepared[CountsSpec, PublicFacts]:
    """Areas of interest, budget and shares, plan."""
    schema = Schema({"cell": list(spec.data.cells or {"total": None})})
    categories = read_categories(spec, hierarchy, frames.areas, frames.records)
    budget, shares = _budget_and_shares(spec, hierarchy, schema, categories)
    request = counts_request(spec, budget, shares)
    plan, interests = plan_with_interests(spec, request, hierarchy, schema, categories)
    return Prepared(spec, plan, PublicFacts(hierarchy, interests))


def counts_request(spec: TabularSpec, budget: Budget, shares: Shares) -> CountsRequest:
    """What counts and histograms ask for alike."""
    privacy = spec.privacy
    return CountsRequest(
        release=spec.release,
        dataset=spec.dataset,
        unit=privacy.unit,
        neighbours=privacy.neighbours,
        max_contribution=privacy.max_contribution,
        budget=budget,
        shares=shares,
        unprotected_totals=spec.unprotected.totals,
        method=spec.estimate.method,
        confidence=spec.output.confidence,
        required=spec.required_of_records,
    )


def _budget_and_shares(
    spec: CountsSpec, hierarchy: Hierarchy, schema: Schema, categories: Mapping[str, Category]
) -> tuple[Budget, Shares]:
    """What the spec states, or what its wish amounts to."""
    budget, shares = spec.privacy.budget, spec.privacy.shares
    if spec.accuracy or isinstance(shares, OptimalSharesSpec):
        # Optimisers take a while to import; specs that state all do without.
        from trellis.workflow.outlook.choose_budget import chosen_split

        return chosen_split(spec, hierarchy, schema, categories)
    assert budget is not None
    return budget.value(), shares


class PreparingCounts:
    """Counts on a tree or a spine, with areas of interest."""

    def prepare(
        self, spec: CountsSpec, hierarchy: Hierarchy, frames: Frames
    ) -> Prepared[CountsSpec, PublicFacts]:
        return prepare_counts(spec, hierarchy, frames)

    def foresee(self, prepared: Prepared) -> Plan:
        plan, interests = prepared.plan, prepared.interests
        if interests.spine is None and not (interests.categories and plan.method.has_variances):
            return with_expected_errors(plan, prepared.hierarchy)
        assert interests.conventional is not None
        return with_effects(
            plan, prepared.hierarchy, interests.spine, interests.categories, interests.conventional
        )


PREPARING = PreparingCounts()
