"""How far the targets of a spec are met by its plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trellis.planning.allocation.choose import Scene, met_targets
from trellis.planning.allocation.targets import Met, how_far_met
from trellis.planning.forecast.area_variance import MeasuredTree
from trellis.planning.forecast.outlook import Outlook
from trellis.planning.spine.measured import measured_by_plan
from trellis.workflow.outlook.choose_budget import scene_of, shares_are_open, targets_of
from trellis.workflow.preparing.prepared import Prepared


def targets_met(prepared: Prepared, outlook: Outlook | None) -> list[Met]:
    """What every target reaches, and what it costs at the margin."""
    spec, interests = prepared.spec, prepared.interests
    if not spec.accuracy:
        return []
    categories = {category.name: category for category in interests.categories}
    if outlook is not None:
        scene = replace(outlook.scene, categories=categories)
        return met_targets(scene, targets_of(spec, scene), outlook.budgets.tolist())
    scene = scene_of(spec, prepared.hierarchy, prepared.plan.schema, categories)
    targets = targets_of(spec, scene)
    measured, parts = _on_spine(prepared, scene)
    model = scene.area_model([target.name for target in targets], measured)
    lines = how_far_met(model, targets, parts * _total(prepared, scene))
    if scene.spine is not None and scene.spine.follows_shares and shares_are_open(spec):
        # Relaxed targets would have other shares, and these another spine.
        return [replace(line, budget_per_unit=None) for line in lines]
    return lines


def _on_spine(prepared: Prepared, scene: Scene) -> tuple[MeasuredTree, np.ndarray]:
    """The tree of the spine; budgets of levels that were chosen freely can move, others cannot."""
    interests, planned = prepared.interests, prepared.plan.spine
    assert scene.spine is not None
    assert interests.spine is not None
    assert planned is not None
    if scene.spine.follows_shares or not shares_are_open(prepared.spec):
        return measured_by_plan(interests.spine, planned), np.ones(1)
    kept = [name for name in scene.spine.by_level.slots if name in interests.shares]
    return scene.spine.by_level.only(kept), np.array([float(interests.shares[n]) for n in kept])


def _total(prepared: Prepared, scene: Scene) -> float:
    """The whole budget; with epsilon and delta, the rho that the noise amounts to."""
    query = next(query for query in prepared.plan.queries if query.noise is not None)
    assert query.noise is not None
    return scene.unit / float(query.noise.parameter * query.share)
