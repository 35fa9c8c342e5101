"""Public facts that a release rests on besides its plan: trees, areas of interest, bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from trellis.model.plans.kinds.flows import FlowDesign
from trellis.model.plans.plan import Plan
from trellis.model.tables.constraints import Constraints
from trellis.model.trees.flows import FlowTree
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.constraints import read_constraints, write_constraints
from trellis.storage.hierarchies import read_hierarchy, write_hierarchy
from trellis.storage.spines import read_areas, read_spine, write_areas, write_spine
from trellis.workflow.public.interests import Interests

if TYPE_CHECKING:
    from trellis.workflow.public.run_folder import RunFolder


@dataclass(frozen=True, slots=True, eq=False)
class PublicFacts:
    """The tree of areas, and areas of interest with the spine that serves them."""

    hierarchy: Hierarchy
    interests: Interests = field(default_factory=Interests)

    def write(self, folder: RunFolder) -> None:
        """Put them into a run folder that is being made."""
        write_hierarchy(folder.hierarchy_file, self.hierarchy)
        if self.interests.spine is not None:
            write_spine(folder.spine_file, self.interests.spine)
        if self.interests.categories:
            write_areas(folder.areas_file, self.hierarchy, self.interests.categories)

    @classmethod
    def read(cls, folder: RunFolder, plan: Plan) -> Self:
        """As the run folder has them, for this plan."""
        return cls(folder.hierarchy(), read_interests(folder, plan))


def read_interests(folder: RunFolder, plan: Plan) -> Interests:
    names = [area.name for area in plan.interests]
    return Interests(
        read_areas(folder.areas_file, names) if names else (),
        None if plan.spine is None else read_spine(folder.spine_file),
    )


@dataclass(frozen=True, slots=True, eq=False)
class BoundedFacts(PublicFacts):
    """With the bounds that counts of histograms keep."""

    constraints: Constraints | None = None

    def write(self, folder: RunFolder) -> None:
        PublicFacts.write(self, folder)
        if self.constraints is not None:
            write_constraints(folder.path, self.constraints)

    @classmethod
    def read(cls, folder: RunFolder, plan: Plan) -> Self:
        """Real estimates keep no bounds."""
        hierarchy = folder.hierarchy()
        bounds = read_constraints(folder.path, plan, hierarchy) if plan.method.whole else None
        return cls(hierarchy, read_interests(folder, plan), bounds)


@dataclass(frozen=True, slots=True, eq=False)
class FlowFacts(PublicFacts):
    """With the destinations of flows, where they differ from the origins."""

    destinations: Hierarchy | None = None

    def tree(self, plan: Plan) -> FlowTree:
        shape = plan.design_as(FlowDesign).shape
        destinations = self.destinations or self.hierarchy
        return FlowTree.of(shape.tree, self.hierarchy, destinations, plan.schema)

    def write(self, folder: RunFolder) -> None:
        PublicFacts.write(self, folder)
        if self.destinations is not None:
            write_hierarchy(folder.destinations_file, self.destinations)

    @classmethod
    def read(cls, folder: RunFolder, plan: Plan) -> Self:
        place = folder.destinations_file
        destinations = read_hierarchy(place) if place.exists() else None
        return cls(folder.hierarchy(), read_interests(folder, plan), destinations)
