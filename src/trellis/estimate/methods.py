"""The estimators of tables that are held in memory, behind one protocol.

Histograms and flows, which are not, have packages of their own.
"""

from __future__ import annotations

from typing import Protocol

from trellis.errors import SpecError
from trellis.estimate.best_linear import estimate_gls
from trellis.estimate.bottomup import estimate_bottomup
from trellis.estimate.group_sizes.estimator import estimate_group_sizes
from trellis.estimate.topdown import estimate_gls_topdown, estimate_topdown
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS
from trellis.model.plans.methods import BOTTOMUP, GLS, GLS_TOPDOWN, TOPDOWN
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements


class Estimator(Protocol):
    """From measurements alone to consistent estimates; the same seed gives the same answer."""

    def __call__(self, measurements: Measurements, tie_seed: int) -> Estimates: ...


ESTIMATORS: dict[str, Estimator] = {
    GLS_TOPDOWN.name: estimate_gls_topdown,
    TOPDOWN.name: estimate_topdown,
    GLS.name: estimate_gls,
    BOTTOMUP.name: estimate_bottomup,
    **dict.fromkeys(SIZE_METHODS, estimate_group_sizes),
}


def estimate(measurements: Measurements, tie_seed: int) -> Estimates:
    """Apply the method that the plan names."""
    plan = measurements.plan
    if plan.method.name not in (fitting := plan.design.fitting(plan)):
        raise SpecError(
            f"estimate.method {plan.method} does not fit what was measured; use one of "
            f"{', '.join(fitting)}."
        )
    return ESTIMATORS[plan.method.name](measurements, tie_seed)
