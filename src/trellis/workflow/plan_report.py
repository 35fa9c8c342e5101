"""Everything that can be said about a plan before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.errors import SpecError
from trellis.model.plan import Plan
from trellis.planning.choose import level_weights, met_targets
from trellis.planning.outlook import Outlook, StrategyLine
from trellis.planning.targets import Met
from trellis.storage.plans import plan_to_json
from trellis.workflow.choose_budget import prior_counts, targets_of
from trellis.workflow.config import Spec
from trellis.workflow.config.planning import OptimalSharesSpec, PriorSpec
from trellis.workflow.prepare import Prepared, foreseen, prepare
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.simulate import Simulation, simulate


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """A plan, what it is expected to bring, and where asked how others compare."""

    prepared: Prepared
    plan: Plan
    outlook: Outlook | None
    targets: tuple[Met, ...]
    comparison: tuple[StrategyLine, ...]
    simulation: Simulation | None
    delta: Fraction | None

    @property
    def epsilon(self) -> float | None:
        """The exact epsilon at the delta that the spec states."""
        return None if self.delta is None else self.plan.privacy.epsilon(self.delta)


def plan_report(
    spec: Spec,
    *,
    hierarchy: Any = None,
    compare: Sequence[str] = (),
    releases: int | None = None,
    prior: PriorSpec | None = None,
    progress: Progress | None = None,
) -> PlanReport:
    """Plan a spec and look ahead; no confidential record is touched.

    `releases` of them are simulated on `prior`, or on the prior of the spec.
    """
    prepared = prepare(spec, hierarchy)
    plan = foreseen(prepared)
    outlook = Outlook.of(plan, prepared.hierarchy)
    met: Sequence[Met] = ()
    if outlook is not None and spec.accuracy:
        targets = targets_of(spec, outlook.scene)
        met = met_targets(outlook.scene, targets, outlook.budgets.tolist())
    budget = spec.privacy.budget
    return PlanReport(
        prepared,
        plan,
        outlook,
        tuple(met),
        _comparison(spec, outlook, compare),
        _simulation(spec, prepared, releases, prior, met, progress or Silent()),
        None if budget is None else budget.delta,
    )


def _comparison(
    spec: Spec, outlook: Outlook | None, names: Sequence[str]
) -> tuple[StrategyLine, ...]:
    if not names:
        return ()
    if outlook is None:
        raise SpecError(
            "--compare needs standard errors that are known beforehand: it is for kind: counts "
            "with estimate.method gls_topdown or gls."
        )
    shares, weights = spec.privacy.shares, None
    if isinstance(shares, OptimalSharesSpec):
        weights = level_weights(shares.optimal.weights, outlook.scene.measured_levels)
    return tuple(outlook.compare(names, weights))


def _simulation(
    spec: Spec,
    prepared: Prepared,
    releases: int | None,
    prior: PriorSpec | None,
    met: Sequence[Met],
    progress: Progress,
) -> Simulation | None:
    if releases is None:
        return None
    shares = spec.privacy.shares
    if prior is None and isinstance(shares, OptimalSharesSpec):
        prior = shares.optimal.prior
    if prior is None:
        raise SpecError(
            "--simulate needs public counts to take for the truth: name a file with --prior, or "
            "under privacy.shares.optimal.prior."
        )
    if spec.kind != "counts":
        raise SpecError("--simulate is for kind: counts.")
    leaves = prior_counts(spec, prior, prepared.hierarchy, prepared.plan.schema)
    targets = [line.target for line in met]
    return simulate(prepared, leaves, releases, targets, progress=progress)


def report_to_json(report: PlanReport) -> dict[str, Any]:
    """The plan as in `plan.json`, and beside it what else is known."""
    content = plan_to_json(report.plan)
    if report.outlook is not None:
        content["expected_errors"] = [
            {
                "level": line.level,
                "query": line.query,
                "areas": line.areas,
                "standard_error": {
                    "least": line.least,
                    "median": line.median,
                    "most": line.most,
                },
                "relative_error_by_size": line.relative_errors,
                "clipping_bias_by_size": line.clipping_bias,
            }
            for line in report.outlook.errors()
        ]
    if report.delta is not None:
        content["epsilon_at_delta"] = {"delta": str(report.delta), "epsilon": report.epsilon}
    if report.targets:
        content["accuracy"] = [
            {
                "area" if line.target.level is None else "level": line.target.name,
                "query": line.target.query.name,
                "within": str(line.target.within),
                "confidence": str(line.target.confidence),
                "reached": line.reached,
                "median_reached": line.median,
                "met": line.is_met,
                "binding": line.binds,
                "budget_per_unit": line.budget_per_unit,
            }
            for line in report.targets
        ]
    if report.comparison:
        content["comparison"] = [
            {
                "strategy": line.name,
                "shares": line.shares,
                "median_standard_errors": line.std_errors,
                "expected_squared_error": line.squared_error,
            }
            for line in report.comparison
        ]
    if report.simulation is not None:
        content["simulation"] = _simulation_to_json(report.simulation)
    return content


def _simulation_to_json(simulation: Simulation) -> dict[str, Any]:
    return {
        "releases": simulation.releases,
        "levels": [
            {
                "level": line.level,
                "root_mean_square_error": line.root_mean_square,
                "linear_root_mean_square_error": line.linear_root_mean_square,
                "bias_by_size": line.bias,
                "false_positive_rate": line.false_positive_rate,
                "coverage": line.coverage,
            }
            for line in simulation.levels
        ],
        "within_target": list(simulation.within),
    }
