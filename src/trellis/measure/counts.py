"""Measures tables of counts: of records by cell, or of groups by size."""

from __future__ import annotations

from trellis.confidential.counts import TrueCounts
from trellis.execution.progress import in_parts
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.answers import answers
from trellis.model.plans.plan import Plan
from trellis.model.results.measurements import Measurements
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine


def measure_counts(
    plan: Plan,
    hierarchy: Hierarchy,
    counts: TrueCounts,
    noise: ChargedNoise,
    spine: Spine | None = None,
) -> Measurements:
    """Noisy answers to all planned queries."""
    exact = answers(plan, hierarchy, counts.leaves, spine)
    asked = zip(plan.queries, exact, strict=True)
    noisy = [
        noise.added_to(query, answer)
        for query, answer in in_parts(asked, [answer.size for answer in exact])
    ]
    tree = hierarchy if spine is None else spine.hierarchy
    return Measurements(plan, tree, tuple(noisy), spine)
