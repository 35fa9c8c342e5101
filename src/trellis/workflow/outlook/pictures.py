"""A plan as pictures, by the names of their files; each is the text of an SVG file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from trellis.errors import RunFolderError, SpecError
from trellis.evaluate.planning_pictures import error_picture, shares_picture
from trellis.evaluate.spine_pictures import effect_chart
from trellis.model.plans.plan import Plan
from trellis.storage.atomic import write_text
from trellis.workflow.outlook.plan_report import PlanReport

_BUDGET_RANGE = np.geomspace(0.1, 10, 21)
"""As parts of the plan's budget."""


def plan_pictures(report: PlanReport) -> dict[str, str]:
    """Shares by level, for every strategy, and errors against the budget where they are known."""
    pictures = {"shares.svg": shares_picture(report.plan.release, _shares(report))}
    for line in report.comparison[1:]:
        pictures[f"shares-{line.name}.svg"] = shares_picture(line.name, line.shares)
    if report.errors:
        totals, errors = _errors_by_budget(report)
        pictures["error-by-budget.svg"] = error_picture(report.budget_unit, totals, errors)
    return {name: svg + "\n" for name, svg in pictures.items()}


def spine_picture(plan: Plan) -> str:
    """The expected errors of areas of interest and levels, without the spine and with it."""
    if plan.forecast.effects is None:
        raise SpecError("--picture: the spec has neither areas of interest nor a spine.")
    return effect_chart(plan.forecast.effects) + "\n"


def write_pictures(folder: Path, pictures: Mapping[str, str]) -> list[Path]:
    """One file for each picture, in a folder that is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder} could not be written ({error.strerror}).") from None
    for name, svg in pictures.items():
        write_text(folder / name, svg)
    return [folder / name for name in pictures]


def _shares(report: PlanReport) -> dict[str, float]:
    shares = {q.level: 0.0 for q in report.plan.queries if q.noise is not None}
    for query in report.plan.queries:
        if query.noise is not None and query.share_class is None:
            shares[query.level] += float(query.share)
    of_spine = report.prepared.interests.shares
    return shares | {level: float(share) for level, share in of_spine.items()}


def _errors_by_budget(report: PlanReport) -> tuple[list[float], dict[str, list[float]]]:
    """Budgets, and the median standard errors that they bring where there is noise."""
    outlook, areas, found = report.outlook, report.area_outlook, []
    for part in _BUDGET_RANGE.tolist():
        at = {} if outlook is None else outlook.with_budgets(outlook.budgets * part).std_errors()
        found.append(at | ({} if areas is None else areas.std_errors(part)))
    whole = outlook.total if outlook is not None else areas.total if areas is not None else 0.0
    noisy = [name for name in _drawn(report) if found[0][name] > 0]
    return [part * whole for part in _BUDGET_RANGE.tolist()], {
        name: [at[name] for at in found] for name in noisy
    }


def _drawn(report: PlanReport) -> list[str]:
    """Levels and areas, with the first published table of each."""
    outlook, areas = report.outlook, report.area_outlook
    first: dict[str, str] = {}
    for level, query in () if outlook is None else outlook.published:
        assert outlook is not None
        first.setdefault(level, outlook.label(level, query))
    return [*first.values(), *(() if areas is None else areas.std_errors(1.0))]
