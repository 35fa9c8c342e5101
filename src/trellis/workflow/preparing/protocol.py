"""From a spec of one kind to its plan."""

from __future__ import annotations

from typing import Protocol, TypeVar

from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.spec import Spec
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepared import Prepared

AnySpec = TypeVar("AnySpec", bound=Spec, contravariant=True)


class PreparingKind(Protocol[AnySpec]):
    """Reads public files alone, and loads no compiler: commands that only look are quick."""

    def prepare(self, spec: AnySpec, hierarchy: Hierarchy, frames: Frames) -> Prepared:
        """Read public files, or their frames, and make the plan."""
        ...

    def foresee(self, prepared: Prepared) -> Plan:
        """The plan with its expected errors."""
        ...
