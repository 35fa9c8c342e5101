"""The estimators a spec can name, behind one protocol."""

from __future__ import annotations

from typing import Protocol

from trellis.errors import SpecError
from trellis.estimate.best_linear import estimate_gls
from trellis.estimate.bottomup import estimate_bottomup
from trellis.estimate.group_sizes.estimator import estimate_group_sizes
from trellis.estimate.topdown import estimate_gls_topdown, estimate_topdown
from trellis.model.plans.flow_estimators import FLOW_ESTIMATORS
from trellis.model.plans.plan import Plan
from trellis.model.plans.size_mechanisms import GROUP_SIZES, SIZE_MECHANISMS
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.trees.flows import FLOWS


class Estimator(Protocol):
    """From measurements alone to consistent estimates; the same seed gives the same answer."""

    def __call__(self, measurements: Measurements, tie_seed: int) -> Estimates: ...


METHODS: dict[str, Estimator] = {
    "gls_topdown": estimate_gls_topdown,
    "topdown": estimate_topdown,
    "gls": estimate_gls,
    "bottomup": estimate_bottomup,
}
"""For counts."""


def methods_for(plan: Plan) -> dict[str, Estimator]:
    """The methods that can work on what a plan measures."""
    if plan.skips_unused:
        return {"topdown": METHODS["topdown"]}
    if plan.histogram is not None:
        return {name: METHODS[name] for name in ("gls_topdown", "topdown", "gls")}
    if plan.kind == FLOWS:
        return dict.fromkeys(FLOW_ESTIMATORS, _flows_by_level)
    if plan.kind != GROUP_SIZES:
        return METHODS if plan.spine is None else {k: METHODS[k] for k in ("gls_topdown", "gls")}
    fitting = [name for name, m in SIZE_MECHANISMS.items() if m.query == plan.cell_query]
    return dict.fromkeys(fitting, estimate_group_sizes)


def _flows_by_level(measurements: Measurements, tie_seed: int) -> Estimates:
    del measurements, tie_seed
    raise AssertionError("Flows are estimated level by level: trellis.estimate.flows.")


def estimate(measurements: Measurements, tie_seed: int) -> Estimates:
    """Apply the method that the plan names."""
    methods = methods_for(measurements.plan)
    method = methods.get(measurements.plan.method)
    if method is None:
        raise SpecError(
            f"There is no estimate.method {measurements.plan.method!r}; use one of "
            f"{', '.join(methods)}."
        )
    return method(measurements, tie_seed)
