"""Whole, non-negative counts added up from the leaves.

What was measured on the leaves is clipped at zero, or moved to the nearest numbers that add up to
the exact totals above them, and every other level is a sum of leaves. Measurements of the levels
between are not used: all of the budget belongs on the leaves.

Reference: Ko, Ziani and Fioretto, "Optimal allocation of privacy budget on hierarchical data
release", Appendix C, for when this beats working downwards.
"""

from __future__ import annotations

import numpy as np

from trellis.estimate.evidence import Evidence
from trellis.estimate.projection import project_l2_families
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.tables.queries import TOTAL


def estimate_bottomup(measurements: Measurements, tie_seed: int) -> Estimates:
    """Leaves first, without variances."""
    plan, hierarchy = measurements.plan, measurements.hierarchy
    leaves = Evidence.of(measurements).cells[-1]
    if plan.unprotected_totals:
        exact = plan.unprotected_totals[-1]
        answer = measurements.answer(exact, TOTAL)
        assert answer is not None
        first_leaf = np.arange(hierarchy.size(exact) + 1)
        for level in range(hierarchy.index(exact), hierarchy.leaf_level):
            first_leaf = hierarchy.child_start[level][first_leaf]
        cells = project_l2_families(
            leaves.ravel(), first_leaf * leaves.shape[1], answer[0][:, 0], tie_seed=tie_seed
        )
        leaves = cells.reshape(leaves.shape)
    else:
        leaves = np.maximum(leaves, 0)
    return Estimates(hierarchy, plan.schema, tuple(hierarchy.sum_up(leaves)))
