"""From the keys of a spec to the plan of a release of histograms."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trellis.errors import InputError, SpecError, StructureError
from trellis.ingest.public.constraints import BoundTable, facility_bounds, read_bounds
from trellis.model.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.hierarchy import Hierarchy
from trellis.model.histograms import COMPLETE
from trellis.model.plan import Plan
from trellis.model.rules import impossible_cells
from trellis.model.schema import Schema
from trellis.planning.budget import Shares
from trellis.planning.constraints import check_feasible, check_program_size
from trellis.planning.counts import CountsRequest
from trellis.planning.histograms import HistogramRequest, plan_histograms
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec
from trellis.workflow.config.histograms import ConstraintSpec, OptimalStrategySpec
from trellis.workflow.config.planning import OptimalSharesSpec


def is_left_open(spec: Spec) -> bool:
    """Whether budget, shares of levels or shares of queries are to be computed."""
    return bool(
        spec.accuracy
        or isinstance(spec.privacy.shares, OptimalSharesSpec)
        or isinstance(spec.strategy, OptimalStrategySpec)
    )


def plan_histogram_spec(
    spec: Spec,
    counts: CountsRequest,
    strategy: Mapping[str, Shares] | None,
    hierarchy: Hierarchy,
) -> Plan:
    """The plan; what is wrong with queries and rules is an error of the spec."""
    assert spec.declared_attributes is not None
    zeros = spec.structural_zeros
    request = HistogramRequest(
        counts=counts,
        schema=spec.cell_schema(),
        ordered=tuple(name for name, a in spec.declared_attributes.items() if a.ordered),
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


def read_spec_constraints(spec: Spec, plan: Plan, hierarchy: Hierarchy) -> Constraints:
    """The stated constraints, from their public tables; they must be possible together."""
    histogram, schema = plan.histogram, plan.schema
    assert histogram is not None
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
    spec: Spec, stated: ConstraintSpec, hierarchy: Hierarchy, schema: Schema
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
        raise InputError(f"{found.label}: the table lists no bound. Take the constraint out.")
    return [replace(found, binds_records=stated.binds_records)]
