"""Everything that can be said about a plan before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.errors import SpecError
from trellis.execution.progress import part
from trellis.model.plans.plan import Plan
from trellis.planning.allocation.choose import level_weights
from trellis.planning.allocation.targets import Met
from trellis.planning.forecast.area_outlook import AreaOutlook
from trellis.planning.forecast.outlook import ErrorLine, Outlook, StrategyLine
from trellis.spec import Spec
from trellis.spec.counts import TabularSpec
from trellis.spec.sections.planning import OptimalSharesSpec, PriorSpec
from trellis.storage.plans import plan_to_json
from trellis.workflow.frames import NO_FRAMES, Frames
from trellis.workflow.kinds import KINDS, outlook_kind
from trellis.workflow.outlook.accuracy_warnings import accuracy_warnings
from trellis.workflow.outlook.choose_budget import (
    rests_on_gls,
    scene_of,
    targets_decide,
)
from trellis.workflow.outlook.met_targets import targets_met
from trellis.workflow.outlook.simulation import Simulation
from trellis.workflow.preparing.prepare import foreseen, prepare
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress, Silent


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """A plan, what it is expected to bring, and where asked how others compare."""

    prepared: Prepared
    plan: Plan
    outlook: Outlook | None
    area_outlook: AreaOutlook | None
    targets: tuple[Met, ...]
    comparison: tuple[StrategyLine, ...]
    simulation: Simulation | None
    delta: Fraction | None
    warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> list[ErrorLine]:
        """Expected errors of levels and areas of interest, as far as they are known."""
        return [line for known in self._outlooks for line in known.errors()]

    @property
    def root_mean_squares(self) -> dict[str, float]:
        """Expected root mean square errors by level or category of areas."""
        return {k: v for known in self._outlooks for k, v in known.root_mean_squares().items()}

    @property
    def _outlooks(self) -> list[Outlook | AreaOutlook]:
        return [known for known in (self.outlook, self.area_outlook) if known is not None]

    @property
    def epsilon(self) -> float | None:
        """The exact epsilon at the delta that the spec states."""
        return None if self.delta is None else self.plan.privacy.epsilon(self.delta)

    @property
    def notes(self) -> list[str]:
        """What shares that were computed do not foresee."""
        key, method = rests_on_gls(self.prepared.spec), self.plan.method
        if key is None:
            return []
        note = f"{key} predicts the errors of gls_topdown, not those of {method}, which differ."
        return [f"{note} Try it with --simulate, or name a prior."]

    @property
    def decided_by(self) -> list[str]:
        """What decides the budget: targets, unless it is stated or the least."""
        if not targets_decide(self.prepared.spec):
            return ["the stated budget"]
        binding = [line.target.label for line in self.targets if line.binds]
        return binding or [f"no target, {self.plan.budget.in_words()} is the least possible budget"]

    @property
    def budget_unit(self) -> str:
        """What the budget is counted in."""
        return "epsilon" if self.plan.budget.is_pure else "rho"

    def to_json(self) -> dict[str, Any]:
        """What `trellis plan --json` prints."""
        return report_to_json(self)


def plan_report(
    spec: Spec,
    frames: Frames = NO_FRAMES,
    *,
    compare: Sequence[str] = (),
    releases: int | None = None,
    prior: PriorSpec | None = None,
    progress: Progress | None = None,
) -> PlanReport:
    """Plan a spec and look ahead; no confidential record is touched.

    This many `releases` are simulated on `prior`, or on the prior of the spec.
    """
    progress = progress or Silent()
    with progress.stage("plan", line=False):
        with part(0.0, 0.8):
            prepared = prepare(spec, frames)
        plan = foreseen(prepared)
    outlook, interests = _outlook(prepared), prepared.interests
    known = AreaOutlook.of(plan, prepared.hierarchy, interests.spine, interests.categories)
    met = targets_met(prepared, outlook)
    budget = spec.privacy.budget
    return PlanReport(
        prepared,
        plan,
        outlook,
        known,
        tuple(met),
        _comparison(spec, outlook, compare),
        _simulation(spec, prepared, releases, prior, met, progress),
        None if budget is None else budget.delta,
        tuple(accuracy_warnings(prepared, plan, prior)),
    )


def _outlook(prepared: Prepared) -> Outlook | None:
    """What is expected of the tables, for kinds that have an outlook."""
    if KINDS[prepared.plan.kind].outlook is None:
        return None
    return outlook_kind(prepared.plan.kind, "an outlook").outlook(prepared)


def _comparison(
    spec: Spec, outlook: Outlook | None, names: Sequence[str]
) -> tuple[StrategyLine, ...]:
    if not names:
        return ()
    if outlook is None:
        raise SpecError(
            "--compare needs standard errors that are known beforehand: it is for counts and "
            "histograms with estimate.method gls_topdown or gls, without a spine."
        )
    if outlook.aims is not None:
        return tuple(outlook.compare(names))
    assert isinstance(spec, TabularSpec)  # no other kind has an outlook
    scene = scene_of(spec, outlook.scene.hierarchy, outlook.scene.schema, {})
    shares, weights = spec.privacy.shares, None
    if isinstance(shares, OptimalSharesSpec):
        weights = level_weights(shares.optimal.weights, scene.measured_levels, spec.areas)
    return tuple(outlook.over(scene.slots).compare(names, weights))


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
    targets = [line.target for line in met]
    kind = outlook_kind(spec.kind, "--simulate")
    return kind.simulate(prepared, prior, releases, targets, progress)


def report_to_json(report: PlanReport) -> dict[str, Any]:
    """The plan as in `plan.json`, with whatever else is known."""
    content = plan_to_json(report.plan)
    if report.notes:
        content["notes"] = report.notes
    if report.warnings:
        content["warnings"] = list(report.warnings)
    if report.errors:
        content["expected_errors"] = [
            {
                "area" if line.is_area else "level": line.level,
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
            for line in report.errors
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
        content["budget_decided_by"] = report.decided_by
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
    lines = [
        {
            "area" if line.is_area else "level": line.level,
            **({} if line.query is None else {"query": line.query}),
            "root_mean_square_error": line.root_mean_square,
            "linear_root_mean_square_error": line.linear_root_mean_square,
            "bias_by_size": line.bias,
            "false_positive_rate": line.false_positive_rate,
            "coverage": line.coverage,
        }
        for line in simulation.levels
    ]
    return {
        "releases": simulation.releases,
        "levels": [line for line in lines if "level" in line],
        "areas": [line for line in lines if "area" in line],
        "within_target": list(simulation.within),
    }
