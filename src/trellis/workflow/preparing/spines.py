"""From the keys `areas` and `spine` of a spec to categories, a spine and a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trellis.errors import SpecError
from trellis.ingest.public.areas import AreaColumns, read_category
from trellis.model.plans.plan import Plan
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.kinds.counts import CountsRequest, plan_counts
from trellis.planning.spine.counts import plan_counts_on_spine, with_areas
from trellis.planning.spine.steps import Branch, Bypass, GroupLevel, RegroupLeaves, Step
from trellis.spec.counts import CountsSpec
from trellis.spec.public_files import undeclared_interests
from trellis.spec.sections.spines import Steps, StepSpec
from trellis.storage.hierarchies import hierarchy_digest
from trellis.storage.spines import category_digest, spine_digest
from trellis.workflow.preparing.sources import is_frame_of_records, resolve_source
from trellis.workflow.public.interests import Interests


def plan_with_interests(
    spec: CountsSpec,
    request: CountsRequest,
    hierarchy: Hierarchy,
    schema: Schema,
    categories: Mapping[str, Category],
) -> tuple[Plan, Interests]:
    """The plan of a release of counts, on a spine if the spec describes one."""
    digest = hierarchy_digest(hierarchy)
    if not spec.spine:
        plan = plan_counts(request, hierarchy, schema, digest)
        found = tuple(categories.values())
        return with_areas(plan, found, category_digest), Interests(found, None, plan)
    made = plan_counts_on_spine(
        request, hierarchy, schema, digest, steps_of(spec.spine), categories, spine_digest
    )
    found = tuple(categories.values())
    plan = with_areas(made.plan, found, category_digest)
    return plan, Interests(found, made.spine, made.conventional, made.shares)


def steps_of(spine: Steps) -> tuple[Step, ...]:
    """The reductions that the steps of a spec name."""
    return tuple(map(_step, spine))


def _step(stated: StepSpec) -> Step:
    if (b := stated.branch) is not None:
        return Branch(b.level, b.inside)
    if (r := stated.regroup_leaves) is not None:
        return RegroupLeaves(r.areas, r.fanout_cutoff, r.cut)
    if (g := stated.group_level) is not None:
        return GroupLevel(g.level, g.areas, g.fanout_cutoff, g.name)
    return Bypass()


def read_categories(
    spec: CountsSpec,
    hierarchy: Hierarchy,
    frames: Mapping[str, Any] | None = None,
    records: Any = None,
) -> dict[str, Category]:
    """The categories that come from files or frames, without the weights of published levels."""
    found = {}
    for name, listed in spec.areas.items():
        if name in hierarchy.level_names:
            if listed.entity is not None or listed.source is not None:
                raise SpecError(
                    f"areas.{name} has the name of a level. Choose another name for these areas."
                )
            continue
        if listed.area is None or listed.entity is None:
            raise SpecError(
                f"areas.{name} is not a level of the hierarchy: name the columns area and entity "
                "of a public file."
            )
        level = listed.level or hierarchy.level_names[-1]
        prefixes = spec.hierarchy.prefixes or {}
        columns = AreaColumns(
            area=listed.area,
            entity=listed.entity,
            level=level,
            width=prefixes.get(level, spec.hierarchy.code_width),
            within=listed.within,
            outside=listed.outside,
            skip_unknown=listed.skip_unknown,
        )
        frame = None if frames is None else frames.get(name)
        source = resolve_source(spec, listed.source, frame, f"areas.{name}.source")
        together = is_frame_of_records(frame, records, f"areas.{name}") if frame is not None else (
            records is None and spec.comes_with_records(listed.source)
        )  # fmt: skip
        if together and not listed.public:
            raise SpecError(undeclared_interests(name))
        found[name] = read_category(source, hierarchy, name, columns, confidential=together)
    return found
