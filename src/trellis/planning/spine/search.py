"""Searches settings of a spine for the least expected standard error of the areas of interest.

Nothing is measured: errors follow from the tree and the noise. The search goes over the fan-out
cutoff, the areas by which leaves are regrouped (with and without the groups that are published),
a level of groups above, and bypassing. Branches are a wish of the owner and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from trellis.errors import SpecError
from trellis.execution.progress import in_parts
from trellis.model.plans.plan import Plan
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.steps import (
    Branch,
    Bypass,
    GroupLevel,
    LevelShares,
    Redrawing,
    RegroupLeaves,
    Step,
    areas_named,
    build,
)

CUTOFFS = (0, 6, 12, 25, 50)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings, the weighted mean of expected standard errors, and the mean of each category."""

    steps: tuple[Step, ...]
    score: float
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is searched: a hierarchy, areas with weights, and how noise follows from shares."""

    hierarchy: Hierarchy
    categories: Mapping[str, Category]
    weights: Mapping[str, Fraction]
    conventional: Plan
    level_shares: LevelShares

    def run(
        self, steps: Sequence[Step], tick: Callable[[], None] = lambda: None
    ) -> list[Candidate]:
        """All candidates, the best first; the tree without a spine is among them."""
        if not any(self.weights.values()):
            raise SpecError("areas: the search needs a category with a weight above 0.")
        found = []
        for candidate in in_parts(self._candidates(steps)):
            tick()
            found.append(self._evaluate(candidate))
        # Of settings that are as good as another, the one with fewer steps.
        return sorted(found, key=lambda c: (float(f"{c.score:.4g}"), len(c.steps), c.score))

    def _candidates(self, steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
        yield ()
        branches = tuple(step for step in steps if isinstance(step, Branch))
        levels = self.hierarchy.level_names
        n_exact = len(self.conventional.unprotected_totals)
        if len(levels) - 2 < max(1, n_exact):  # nothing between the exact levels and the leaves
            return
        wanted = tuple(name for name in self.weights if name not in levels)
        given = next((s.areas for s in steps if isinstance(s, RegroupLeaves)), wanted)
        choices = dict.fromkeys((given, wanted, (*wanted, levels[-2]), (levels[-2],)))
        can_group = len(levels) - 3 >= max(1, n_exact)
        for areas, cutoff, group, skip in product(
            choices, CUTOFFS, (False, True) if can_group else (False,), (False, True)
        ):
            if not areas:
                continue
            redrawn: list[Redrawing] = [*branches, RegroupLeaves(areas, cutoff)]
            if group:
                redrawn.append(GroupLevel(levels[-3], wanted or areas, cutoff))
            yield (*redrawn, Bypass()) if skip else tuple(redrawn)

    def _evaluate(self, steps: tuple[Step, ...]) -> Candidate:
        from trellis.numerics.trees.area_errors import AreaErrors  # compiles

        plan, exact = self.conventional, self.conventional.unprotected_totals
        some = next(query for query in plan.queries if query.noise is not None)
        assert some.noise is not None
        unit, law = some.noise.parameter * some.share, type(some.noise)
        built = build(
            self.hierarchy, steps, self.categories, self.level_shares, law.name,
            len(exact) if plan.schema.n_cells == 1 else 0,
        )  # fmt: skip
        assert built.node_shares is not None
        of_share = np.array(
            [law(unit / s).variance if s else np.inf for s in built.node_shares.values]
        )
        variances = [of_share[classes] for classes in built.node_shares.classes]
        if plan.schema.n_cells == 1:
            for name in exact:
                variances[built.hierarchy.index(name)][:] = 0
        errors = AreaErrors.of_variances(plan, built.hierarchy, variances)
        means = []
        for name in self.weights:
            areas = areas_named(self.hierarchy, self.categories, name)
            means.append(float(errors.of(areas.carried(built.leaf_order)).mean()))
        weights = [float(w) for w in self.weights.values()]
        return Candidate(steps, float(np.average(means, weights=weights)), tuple(means))


def in_yaml(steps: Sequence[Step]) -> str:
    """Settings as a spec writes them."""
    lines = ["spine:"] if steps else ["# without a spine"]
    for step in steps:
        if isinstance(step, Branch):
            lines.append(f"  - branch: {{level: {step.level}, inside: [{', '.join(step.inside)}]}}")
        elif isinstance(step, RegroupLeaves):
            lines.append(
                f"  - regroup_leaves: {{areas: [{', '.join(step.areas)}], "
                f"fanout_cutoff: {step.fanout_cutoff}, cut: {step.cut}}}"
            )
        elif isinstance(step, GroupLevel):
            lines.append(
                f"  - group_level: {{level: {step.level}, areas: [{', '.join(step.areas)}], "
                f"fanout_cutoff: {step.fanout_cutoff}}}"
            )
        else:
            lines.append("  - bypass")
    return "\n".join(lines)
