"""What a plan is expected to bring, as text."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.cli.show.numbers import rounded
from trellis.cli.terminal import Terminal
from trellis.model.plans.percent import in_percent
from trellis.planning.allocation.targets import Met
from trellis.planning.forecast.outlook import SIZES, SMALL_SIZES, ErrorLine, StrategyLine
from trellis.privacy.guarantee import round_up
from trellis.workflow.outlook.plan_report import PlanReport
from trellis.workflow.outlook.simulation import SIZE_CLASSES, LevelOutcome, Simulation


def show_outlook(terminal: Terminal, report: PlanReport) -> None:
    """Errors by size, targets, other strategies and simulated releases, as far as there are any."""
    for warning in report.warnings:
        terminal.advise(warning)
    for note in report.notes:
        terminal.result(note)
    if report.errors:
        _show_errors(terminal, report.errors)
    if report.epsilon is not None:
        terminal.result(f"At delta = {report.delta}: epsilon <= {round_up(report.epsilon)}.")
    if report.targets:
        _show_targets(terminal, report)
    if report.comparison:
        _show_comparison(terminal, report.comparison)
    if report.simulation is not None:
        _show_simulation(terminal, report)


def _show_errors(terminal: Terminal, lines: Sequence[ErrorLine]) -> None:
    relative, bias = [], []
    for line in lines:
        name = [_name(line), line.query]
        parts = [f"{rounded(100 * value, 2)} %" for value in line.relative_errors.values()]
        relative.append([*name, rounded(line.median), *parts])
        bias.append([*name, *map(_short, line.clipping_bias.values())])
    columns = ["level", "query", "std error", *(f"at {size:,}" for size in SIZES)]
    title = "Expected relative error by true count; std error in records"
    terminal.table(title, columns, relative)
    columns = ["level", "query", *(f"at {size:,}" for size in SMALL_SIZES)]
    terminal.table("Bias of clipping by true count, in records", columns, bias)


def _show_targets(terminal: Terminal, report: PlanReport) -> None:
    columns = ["target", "every area", "half of them", "met"]
    columns.append(f"{report.budget_unit} per unit of within")
    rows = [
        [
            line.target.label,
            f"within {rounded(line.reached)}",
            f"within {rounded(line.median)}",
            "yes" if line.is_met else "no",
            _saving(line),
        ]
        for line in report.targets
    ]
    terminal.table("Accuracy, in records, at the confidence of each target", columns, rows)
    terminal.result(f"What decides: {'; '.join(report.decided_by)}.")
    if tied := [line.target.label for line in report.targets if line.is_tied]:
        terminal.result(f"These bind together, so relaxing one saves nothing: {'; '.join(tied)}.")


def _saving(line: Met) -> str:
    if line.is_tied:
        return "0 alone"
    if not line.binds:
        return "0, does not bind"
    return "not known" if line.budget_per_unit is None else f"{line.budget_per_unit:.3g}"


def _show_comparison(terminal: Terminal, lines: Sequence[StrategyLine]) -> None:
    """A column for each strategy: there may be many published tables."""
    names = [line.name for line in lines]
    rows = [
        [table, *(rounded(line.std_errors[table]) for line in lines)]
        for table in lines[0].std_errors
    ]
    errors = [f"{line.squared_error / lines[0].squared_error:.4g}" for line in lines]
    rows.append(["squared error", *errors])
    terminal.table("Median standard errors of strategies, in records", ["published", *names], rows)
    levels = dict.fromkeys(level for line in lines for level in line.shares)
    rows = [
        [level, *(f"{100 * line.shares.get(level, 0):.3g} %" for line in lines)] for level in levels
    ]
    terminal.table("Shares of the budget", ["level", *names], rows)


def _show_simulation(terminal: Terminal, report: PlanReport) -> None:
    simulation = report.simulation
    assert simulation is not None
    expected = report.root_mean_squares
    errors, bias = [], []
    for line in simulation.levels:
        roots = (line.root_mean_square, line.linear_root_mean_square, expected.get(line.name))
        rates = (line.false_positive_rate, line.coverage)
        errors.append([_name(line), *map(_three, roots), *map(_percent, rates)])
        bias.append([_name(line), *map(_short, line.bias.values())])
    title = (
        f"{simulation.releases} simulated releases of the prior: root mean square errors in records"
    )
    confidence = in_percent(report.plan.confidence)
    columns = ["level", "error", "linear", "expected", "false positives", f"{confidence} coverage"]
    terminal.table(title, columns, errors)
    terminal.table(
        "Bias of published counts by true count, in records", ["level", *_classes()], bias
    )
    terminal.result("linear: before clipping and rounding; the expected errors are for these.")
    _tell_targets(terminal, report.targets, simulation)


def _tell_targets(terminal: Terminal, targets: Sequence[Met], simulation: Simulation) -> None:
    for line, share in zip(targets, simulation.within, strict=True):
        terminal.result(f"{line.target.label}: reached in {100 * share:.2f} % of the areas.")


def _name(line: ErrorLine | LevelOutcome) -> str:
    if line.is_area:
        return f"{line.level} (areas)"
    return line.name if isinstance(line, LevelOutcome) else line.level


def _classes() -> list[str]:
    ends = [f"- {end - 1:,}" for end in SIZE_CLASSES[2:]]
    return ["0", *(f"{a:,} {b}" for a, b in zip(SIZE_CLASSES[1:], [*ends, "up"], strict=True))]


def _short(value: float | None) -> str:
    return "-" if value is None else rounded(value, 2) if abs(value) >= 0.005 else "0"


def _three(value: float | None) -> str:
    return "-" if value is None else rounded(value)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
