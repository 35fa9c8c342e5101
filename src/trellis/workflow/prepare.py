"""From a spec to a plan: reads public files only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trellis.errors import SpecError
from trellis.ingest.public import hierarchies
from trellis.ingest.reader import Source
from trellis.model.areas import Category
from trellis.model.constraints import Constraints
from trellis.model.flows import FLOWS, FlowTree
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.model.schema import Schema
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.planning.budget import Shares
from trellis.planning.counts import CountsRequest
from trellis.planning.expected_error import with_expected_errors
from trellis.planning.file_names import check_file_names
from trellis.planning.group_sizes import GroupSizesRequest, plan_group_sizes
from trellis.planning.spine.effects import with_effects
from trellis.privacy.budget import Budget
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec
from trellis.workflow.config.histograms import OptimalStrategySpec
from trellis.workflow.config.planning import OptimalSharesSpec
from trellis.workflow.config.public_files import undeclared_areas
from trellis.workflow.config.requirements import required_of_records
from trellis.workflow.config.spec import HierarchySpec
from trellis.workflow.flow_plan import flow_plan
from trellis.workflow.flow_tree import flow_tree
from trellis.workflow.histograms import is_left_open, plan_histogram_spec, read_spec_constraints
from trellis.workflow.interests import Interests
from trellis.workflow.sources import is_frame_of_records, resolve_source
from trellis.workflow.spines import plan_with_interests, read_categories


@dataclass(frozen=True, slots=True)
class Prepared:
    """A spec with the public facts it refers to."""

    spec: Spec
    hierarchy: Hierarchy
    plan: Plan
    interests: Interests = field(default_factory=Interests)
    destinations: Hierarchy | None = None  # of flows, where they differ from the origins
    constraints: Constraints | None = None

    @property
    def flow_tree(self) -> FlowTree:
        """The two sides of flows."""
        return flow_tree(self.plan, self.hierarchy, self.destinations)


def prepare(
    spec: Spec,
    areas: Any = None,
    records: Any = None,
    interests: Any = None,
    destinations: Any = None,
) -> Prepared:
    """Read the hierarchy and make the plan; all but the spec may be frames.

    `interests` may hold a frame for each category of areas of interest.
    """
    spec = spec.model_copy()  # validated again: Python can change any object by force
    prepared = _prepared(spec, areas, records, interests, destinations)
    check_file_names(prepared.plan)
    return prepared


def _prepared(spec: Spec, areas: Any, records: Any, interests: Any, destinations: Any) -> Prepared:
    hierarchy = read_hierarchy(spec, areas, records)
    if spec.kind == FLOWS:
        other = _read_destinations(spec, destinations, records)
        plan = flow_plan(spec, hierarchy, other)
        return Prepared(spec, hierarchy, plan, destinations=other)
    if spec.kind == GROUP_SIZES:
        return Prepared(spec, hierarchy, _plan_group_sizes(spec, hierarchy))
    if spec.declared_attributes is not None:
        plan = _plan_histograms(spec, hierarchy)
        constraints = read_spec_constraints(spec, plan, hierarchy)
        return Prepared(spec, hierarchy, plan, constraints=constraints)
    schema = Schema({"cell": list(spec.data.cells or {"total": None})})
    categories = read_categories(spec, hierarchy, interests, records)
    budget, shares = _budget_and_shares(spec, hierarchy, schema, categories)
    request = _counts_request(spec, budget, shares)
    planned = plan_with_interests(spec, request, hierarchy, schema, categories)
    return Prepared(spec, hierarchy, *planned)


def _read_destinations(spec: Spec, frame: Any, records: Any) -> Hierarchy | None:
    if spec.destinations is not None:
        return read_areas(spec, spec.destinations, frame, records, "destinations")
    if frame is not None:
        raise SpecError("destinations: a frame was given, and no such key says how to read it.")
    return None


def foreseen(prepared: Prepared) -> Plan:
    """The plan with its expected errors, also of areas of interest, before and after."""
    plan, hierarchy, interests = prepared.plan, prepared.hierarchy, prepared.interests
    if interests.spine is None and not (interests.categories and plan.has_variances):
        return with_expected_errors(plan, hierarchy)
    assert interests.conventional is not None
    return with_effects(
        plan, hierarchy, interests.spine, interests.categories, interests.conventional
    )


def _plan_histograms(spec: Spec, hierarchy: Hierarchy) -> Plan:
    """Shares of levels and queries as stated, or as computed."""
    budget, shares, strategy = spec.privacy.budget, spec.privacy.shares, spec.strategy
    if is_left_open(spec):
        # Optimisers take a while to import; specs that state all do without.
        from trellis.workflow.choose_strategy import chosen_strategy

        found = chosen_strategy(spec, hierarchy)
        request = _counts_request(spec, found.budget, found.shares)
        return plan_histogram_spec(spec, request, found.strategy, hierarchy)
    assert budget is not None
    assert isinstance(shares, Shares)
    assert not isinstance(strategy, OptimalStrategySpec)
    request = _counts_request(spec, budget.value(), shares)
    return plan_histogram_spec(spec, request, strategy, hierarchy)


def _counts_request(spec: Spec, budget: Budget, shares: Shares) -> CountsRequest:
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
        required=required_of_records(spec),
    )


def _budget_and_shares(
    spec: Spec, hierarchy: Hierarchy, schema: Schema, categories: Mapping[str, Category]
) -> tuple[Budget, Shares]:
    """What the spec states, or what its wish amounts to."""
    budget, shares = spec.privacy.budget, spec.privacy.shares
    if spec.accuracy or isinstance(shares, OptimalSharesSpec):
        # Optimisers take a while to import; specs that state all do without.
        from trellis.workflow.choose_budget import chosen_split

        return chosen_split(spec, hierarchy, schema, categories)
    assert budget is not None
    return budget.value(), shares


def _plan_group_sizes(spec: Spec, hierarchy: Hierarchy) -> Plan:
    privacy = spec.privacy
    assert privacy.budget is not None
    assert isinstance(privacy.shares, Shares)
    assert spec.sizes is not None
    assert spec.mechanism is not None
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
        mechanism=spec.mechanism,
        weights=spec.estimate.weights,
        confidence=spec.output.confidence,
        required=required_of_records(spec),
    )
    return plan_group_sizes(request, hierarchy, hierarchy_digest(hierarchy))


def read_hierarchy(spec: Spec, areas: Any = None, records: Any = None) -> Hierarchy:
    """The tree of areas, of the origins for flows."""
    return read_areas(spec, spec.hierarchy, areas, records, "hierarchy")


def read_areas(spec: Spec, layout: HierarchySpec, areas: Any, records: Any, key: str) -> Hierarchy:
    """A tree of areas. Errors quote its codes, which are public.

    If it comes with the records, the codes are declared so, and of other columns nothing is told.
    """
    source = resolve_source(spec, layout.file, areas, f"{key}.source")
    together = is_frame_of_records(areas, records, key) if areas is not None else (
        records is None and spec.comes_with_records(layout.file)
    )  # fmt: skip
    if together and not layout.public:
        raise SpecError(undeclared_areas(key))
    return _read_layout(layout, source, confidential=together)


def _read_layout(layout: HierarchySpec, source: Source, *, confidential: bool) -> Hierarchy:
    root = next(iter(layout.root.items())) if layout.root else None
    if layout.prefixes is not None:
        assert layout.code is not None
        column, width = layout.code.column, layout.code.width
        return hierarchies.from_prefixes(
            source, column, layout.prefixes, width, root, confidential=confidential
        )
    if layout.columns is not None:
        return hierarchies.from_level_columns(
            source, layout.columns, root, confidential=confidential
        )
    if layout.hrc is not None:
        return hierarchies.from_hrc(source, layout.hrc.lead, layout.levels, root)
    assert layout.parent_child is not None
    return hierarchies.from_parent_child(
        source,
        layout.parent_child.child,
        layout.parent_child.parent,
        layout.levels,
        layout.parent_child.width,
        root,
        confidential=confidential,
    )
