"""The estimators a spec can name, behind one protocol."""

from __future__ import annotations

from typing import Protocol

from trellis.errors import SpecError
from trellis.estimate.best_linear import estimate_gls
from trellis.estimate.topdown import estimate_gls_topdown, estimate_topdown
from trellis.model.estimates import Estimates
from trellis.model.measurements import Measurements


class Estimator(Protocol):
    """From measurements alone to consistent estimates; the same seed gives the same answer."""

    def __call__(self, measurements: Measurements, tie_seed: int) -> Estimates: ...


METHODS: dict[str, Estimator] = {
    "gls_topdown": estimate_gls_topdown,
    "topdown": estimate_topdown,
    "gls": estimate_gls,
}


def estimate(measurements: Measurements, tie_seed: int) -> Estimates:
    """Apply the method that the plan names."""
    method = METHODS.get(measurements.plan.method)
    if method is None:
        raise SpecError(
            f"There is no estimate.method {measurements.plan.method!r}; use one of "
            f"{', '.join(METHODS)}."
        )
    return method(measurements, tie_seed)
