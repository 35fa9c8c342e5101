"""From a spec to a plan: reads public files only."""

from __future__ import annotations

from dataclasses import replace

from trellis.model.plans.plan import Plan
from trellis.planning.kinds.file_names import check_file_names
from trellis.spec import Spec
from trellis.workflow.frames import NO_FRAMES, Frames
from trellis.workflow.kinds import preparing_kind
from trellis.workflow.preparing.areas import read_hierarchy
from trellis.workflow.preparing.prepared import Prepared


def prepare(spec: Spec, frames: Frames = NO_FRAMES) -> Prepared:
    """Read the public files that a spec names, or their frames, and make the plan."""
    spec = spec.model_copy()  # validated again: Python can change any object by force
    hierarchy = read_hierarchy(spec, frames.hierarchy, frames.records)
    prepared = preparing_kind(spec.kind).prepare(spec, hierarchy, frames)
    check_file_names(prepared.plan)
    return prepared


def foreseen(prepared: Prepared) -> Plan:
    """The plan with its expected errors, also of areas of interest, before and after."""
    return preparing_kind(prepared.plan.kind).foresee(prepared)


def with_forecast(prepared: Prepared) -> Prepared:
    return replace(prepared, plan=foreseen(prepared))
