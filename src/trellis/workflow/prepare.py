"""From a spec to a plan: reads public files only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis.errors import InputError, SourceError, SpecError, StructureError
from trellis.ingest import hierarchies
from trellis.ingest.duckdb import Source, as_table
from trellis.model.constraints import Constraints
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.model.schema import Schema
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.planning.counts import CountsRequest, plan_counts
from trellis.planning.group_sizes import GroupSizesRequest, plan_group_sizes
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec
from trellis.workflow.config.spec import HierarchySpec
from trellis.workflow.histograms import plan_histogram_spec, read_spec_constraints


@dataclass(frozen=True, slots=True)
class Prepared:
    """A spec with the public facts it refers to."""

    spec: Spec
    hierarchy: Hierarchy
    plan: Plan
    constraints: Constraints | None = None


def prepare(spec: Spec, areas: Any = None, records: Any = None) -> Prepared:
    """Read the hierarchy and make the plan; `areas` and `records` may be frames."""
    hierarchy = read_hierarchy(spec, areas, records)
    make_plan = _plan_group_sizes if spec.kind == GROUP_SIZES else _plan_counts
    plan = make_plan(spec, hierarchy)
    constraints = None
    if plan.histogram is not None:
        constraints = read_spec_constraints(spec, plan, hierarchy)
    return Prepared(spec, hierarchy, plan, constraints)


def _plan_counts(spec: Spec, hierarchy: Hierarchy) -> Plan:
    request = _counts_request(spec)
    if spec.attributes is not None:
        return plan_histogram_spec(spec, request, hierarchy)
    schema = Schema({"cell": list(spec.data.cells or {"total": None})})
    return plan_counts(request, hierarchy, schema, hierarchy_digest(hierarchy))


def _counts_request(spec: Spec) -> CountsRequest:
    privacy = spec.privacy
    return CountsRequest(
        release=spec.release,
        dataset=spec.dataset,
        unit=privacy.unit,
        neighbours=privacy.neighbours,
        max_contribution=privacy.max_contribution,
        budget=privacy.budget.value(),
        shares=privacy.shares,
        unprotected_totals=spec.unprotected.totals,
        method=spec.estimate.method,
        confidence=spec.output.confidence,
    )


def _plan_group_sizes(spec: Spec, hierarchy: Hierarchy) -> Plan:
    privacy = spec.privacy
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
    )
    return plan_group_sizes(request, hierarchy, hierarchy_digest(hierarchy))


def read_hierarchy(spec: Spec, areas: Any = None, records: Any = None) -> Hierarchy:
    """The tree of areas. If it comes with the records, errors quote nothing of what was read."""
    source = resolve_source(spec, spec.hierarchy.file, areas, "hierarchy.source")
    same_file = areas is None and records is None and spec.areas_come_with_records
    if not same_file and (areas is None or areas is not records):
        return _read_layout(spec.hierarchy, source, confidential=False)
    spec.require_public_areas()
    try:
        return _read_layout(spec.hierarchy, source, confidential=True)
    except SourceError:
        raise
    except (InputError, StructureError):
        raise InputError(
            "The hierarchy is not well formed. Its source also holds the records, so nothing of "
            "it is shown: put the list of areas into a public file of its own to see what is wrong."
        ) from None


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


def resolve_source(spec: Spec, named: str | None, frame: Any, key: str) -> Source:
    """The frame if one is given, else the file that the spec names."""
    if frame is not None:
        return as_table(frame)
    if named is None:
        raise SpecError(f"{key} is missing: name a file, or pass a frame in Python.")
    path: Path = spec.resolve(named)
    return path
