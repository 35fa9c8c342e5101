"""From a spec to a plan: reads public files only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis.errors import SpecError
from trellis.ingest import hierarchies
from trellis.ingest.duckdb import Source, as_table
from trellis.model.hierarchy import Hierarchy
from trellis.model.plan import Plan
from trellis.model.schema import Schema
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.planning.counts import CountsRequest, plan_counts
from trellis.planning.group_sizes import GroupSizesRequest, plan_group_sizes
from trellis.storage.hierarchies import hierarchy_digest
from trellis.workflow.config import Spec


@dataclass(frozen=True, slots=True)
class Prepared:
    """A spec with the public facts it refers to."""

    spec: Spec
    hierarchy: Hierarchy
    plan: Plan


def prepare(spec: Spec, areas: Any = None) -> Prepared:
    """Read the hierarchy (from `areas`, if a frame is given) and make the plan."""
    hierarchy = read_hierarchy(spec, areas)
    make_plan = _plan_group_sizes if spec.kind == GROUP_SIZES else _plan_counts
    return Prepared(spec, hierarchy, make_plan(spec, hierarchy))


def _plan_counts(spec: Spec, hierarchy: Hierarchy) -> Plan:
    privacy = spec.privacy
    request = CountsRequest(
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
    schema = Schema({"cell": list(spec.data.cells or {"total": None})})
    return plan_counts(request, hierarchy, schema, hierarchy_digest(hierarchy))


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


def read_hierarchy(spec: Spec, areas: Any = None) -> Hierarchy:
    layout = spec.hierarchy
    source = resolve_source(spec, layout.file, areas, "hierarchy.source")
    root = next(iter(layout.root.items())) if layout.root else None
    if layout.prefixes is not None:
        assert layout.code is not None
        return hierarchies.from_prefixes(
            source, layout.code.column, layout.prefixes, layout.code.width, root
        )
    if layout.columns is not None:
        return hierarchies.from_level_columns(source, layout.columns, root)
    assert layout.parent_child is not None
    return hierarchies.from_parent_child(
        source,
        layout.parent_child.child,
        layout.parent_child.parent,
        layout.levels,
        layout.parent_child.width,
        root,
    )


def resolve_source(spec: Spec, named: str | None, frame: Any, key: str) -> Source:
    """The frame if one is given, else the file that the spec names."""
    if frame is not None:
        return as_table(frame)
    if named is None:
        raise SpecError(f"{key} is missing: name a file, or pass a frame in Python.")
    path: Path = spec.resolve(named)
    return path
