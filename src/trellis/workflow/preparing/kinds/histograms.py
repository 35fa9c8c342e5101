"""From the keys of a spec to the plan of a release of histograms."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trellis.errors import InputError, SpecError, StructureError
from trellis.ingest.public.constraints import BoundTable, facility_bounds, read_bounds
from trellis.model.plans.kinds.histograms import COMPLETE, HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.shares import Shares
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.rules import impossible_cells
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.feasibility.constraints import check_feasible, check_program_size
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.kinds.histograms import HistogramRequest, plan_histograms
from trellis.spec.histograms import HistogramsSpec
from trellis.spec.sections.planning import OptimalSharesSpec
from trellis.spec.sections.rules import ConstraintSpec
from trellis.spec.sections.strategy import OptimalStrategySpec
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.kinds.counts import counts_request
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import BoundedFacts


def prepare_histograms(
    spec: HistogramsSpec, hierarchy: Hierarchy
) -> Prepared[HistogramsSpec, BoundedFacts]:
    """Shares of levels and queries as stated, or as computed; then the bounds."""
    plan = _plan(spec, hierarchy)
    bounds = read_spec_constraints(spec, plan, hierarchy)
    return Prepared(spec, plan, BoundedFacts(hierarchy, constraints=bounds))


def _plan(spec: HistogramsSpec, hierarchy: Hierarchy) -> Plan:
    budget, shares, strategy = spec.privacy.budget, spec.privacy.shares, spec.strategy
    if is_left_open(spec):
        # Optimisers take a while to import; specs that state all do without.
        from trellis.workflow.outlook.choose_strategy import chosen_strategy

        found = chosen_strategy(spec, hierarchy)
        request = counts_request(spec, found.budget, found.shares)
        return plan_histogram_spec(spec, request, found.strategy, hierarchy)
    assert budget is not None
    assert isinstance(shares, Shares)
    assert not isinstance(strategy, OptimalStrategySpec)
    request = counts_request(spec, budget.value(), shares)
    return plan_histogram_spec(spec, request, strategy, hierarchy)


def is_left_open(spec: HistogramsSpec) -> bool:
    """Whether budget, shares of levels or shares of queries are to be computed."""
    return bool(
        spec.accuracy
        or isinstance(spec.privacy.shares, OptimalSharesSpec)
        or isinstance(spec.strategy, OptimalStrategySpec)
    )


def plan_histogram_spec(
    spec: HistogramsSpec,
    counts: CountsRequest,
    strategy: Mapping[str, Shares] | None,
    hierarchy: Hierarchy,
) -> Plan:
    """The plan; what is wrong with queries and rules is an error of the spec."""
    zeros = spec.structural_zeros
    request = HistogramRequest(
        counts=counts,
        schema=spec.cell_schema(),
        ordered=tuple(name for name, a in spec.attributes.items() if a.ordered),
        strategy=strategy,
        tables=spec.output.tables,
        microdata=bool(spec.output.microdata),
        structural_zeros=() if zeros is None else zeros.rules,
        zeros_bind_records=zeros is None or zeros.binds_records,
        edit_rules=spec.edit_rules or (),
        enforce_edit_rules=spec.estimate.edit_rules != "audit",
        passes=spec.estimate.passes or (),
        measurements=spec.output.measurements or COMPLETE,
    )
    try:
        return plan_histograms(request, hierarchy, hierarchy_digest(hierarchy), machine_memory())
    except StructureError as error:
        raise SpecError(str(error)) from None


def machine_memory() -> int | None:
    """Bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def read_spec_constraints(spec: HistogramsSpec, plan: Plan, hierarchy: Hierarchy) -> Constraints:
    """The stated constraints, from their public tables; they must be possible together."""
    histogram, schema = plan.design_as(HistogramDesign), plan.schema
    impossible = impossible_cells(schema, histogram.ordered, histogram.structural_zeros)
    linear: list[LinearConstraint] = []
    for stated in spec.constraints or ():
        try:
            linear += _read_one(spec, stated, hierarchy, schema)
        except StructureError as error:
            raise SpecError(f"constraints: {stated.name}: {error}") from None
    labels = [constraint.label for constraint in linear]
    if len(set(labels)) != len(labels):
        raise SpecError("constraints: two have the same name. Rename one.")
    constraints = Constraints(tuple(linear), impossible)
    check_program_size(constraints, hierarchy, schema, plan.unprotected_totals, machine_memory())
    check_feasible(constraints, hierarchy, schema)
    return constraints


def _read_one(
    spec: HistogramsSpec, stated: ConstraintSpec, hierarchy: Hierarchy, schema: Schema
) -> Sequence[LinearConstraint]:
    if stated.source is None:
        raise SpecError(f"constraints: {stated.name}: name the public file in source.")
    path = spec.resolve(stated.source)
    level = stated.level or hierarchy.level_names[-1]
    if level not in hierarchy.level_names:
        raise SpecError(
            f"constraints: {stated.name} names level {level!r}; the hierarchy has "
            f"{', '.join(hierarchy.level_names)}."
        )
    column = stated.equal or stated.at_most or stated.at_least or stated.facilities
    assert column is not None
    width = spec.hierarchy.code_width if level == hierarchy.level_names[-1] else None
    table = BoundTable(
        stated.name, path, level, stated.area, stated.query, column, width, stated.group
    )
    if stated.facilities is not None:
        bounds = facility_bounds(table, stated.open_to_all, hierarchy, schema)
        return [replace(bound, binds_records=stated.binds_records) for bound in bounds]
    sense = Sense.EQUAL if stated.equal else Sense.AT_MOST if stated.at_most else Sense.AT_LEAST
    found = read_bounds(table, sense, hierarchy, schema)
    if (found.bound == NO_BOUND).all():
        raise InputError(f"{found.label}: the table lists no bounds. Take the constraint out.")
    return [replace(found, binds_records=stated.binds_records)]


class PreparingHistograms:
    """Histograms with their rules and bounds."""

    def prepare(
        self, spec: HistogramsSpec, hierarchy: Hierarchy, frames: Frames
    ) -> Prepared[HistogramsSpec, BoundedFacts]:
        del frames  # bounds come from files
        return prepare_histograms(spec, hierarchy)

    def foresee(self, prepared: Prepared) -> Plan:
        """Errors by table are many; the outlook has them."""
        return prepared.plan


PREPARING = PreparingHistograms()
