"""What is shared by kinds with tables in memory: counts, and groups by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.estimate.evidence import empty_nodes
from trellis.estimate.methods import estimate
from trellis.estimate.spine import carry_back, estimate_areas
from trellis.evaluate.report import SECTIONS, Sections
from trellis.model.plans.plan import Plan
from trellis.model.results.area_estimates import AreaEstimates
from trellis.model.results.estimates import Estimates
from trellis.model.results.exact_totals import ExactTotals, category_range, level_range, settled
from trellis.model.results.measurements import Measurements
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.trees.area_errors import AreaErrors
from trellis.storage.estimates import (
    read_area_estimates,
    read_estimates,
    write_area_estimates,
    write_estimates,
)
from trellis.storage.measurements import read_measurements
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.interests import Interests
from trellis.workflow.public.protocol import MeasuredRun
from trellis.workflow.public.run_folder import RunFolder


@dataclass(frozen=True, slots=True, eq=False)
class TableEstimates:
    """Estimates of the published levels, and of the areas of interest."""

    levels: Estimates
    areas: list[AreaEstimates]


class PublicTables:
    """The parts of such a kind that its tables do not change."""

    sections: Sections = SECTIONS

    def facts(self, folder: RunFolder, plan: Plan) -> PublicFacts:
        return PublicFacts.read(folder, plan)

    def estimates(self, run: MeasuredRun[PublicFacts]) -> TableEstimates:
        return read_table_estimates(run)

    def left_out(self, spec: Mapping[str, Any], plan: Plan, method: str) -> list[str]:
        del spec, plan, method
        return []


def measurements_of(run: MeasuredRun[Any]) -> Measurements:
    spine = run.facts.interests.spine
    return read_measurements(run.folder.measurements, run.plan, run.hierarchy, spine)


def write_table_estimates(into: Path, estimates: TableEstimates) -> None:
    write_estimates(into, estimates.levels)
    write_area_estimates(into, estimates.areas)


def read_table_estimates(run: MeasuredRun[Any]) -> TableEstimates:
    plan, folder = run.plan, run.folder.estimates
    adds_up, categories = plan.method.adds_up, run.facts.interests.categories
    return TableEstimates(
        read_estimates(folder, run.hierarchy, plan.schema, adds_up=adds_up),
        read_area_estimates(folder, categories, plan.schema),
    )


def estimate_tables(
    measurements: Measurements,
    hierarchy: Hierarchy,
    interests: Interests,
    tie_seed: int,
    facts: ExactTotals | None = None,
) -> TableEstimates:
    """Estimates by the method of the plan, on the published tree.

    Nothing is uncertain about a count that exact totals fix; without `facts`, these are the totals
    that the published counts keep.
    """
    found, errors, areas = estimate(measurements, tie_seed), None, []
    if found.std_error is not None and (interests.spine is not None or interests.categories):
        empty = empty_nodes(measurements)
        errors = AreaErrors.on(measurements.plan, hierarchy, interests.spine, empty)
    if interests.spine is not None:
        assert errors is not None
        found = carry_back(found, hierarchy, interests.spine, errors)
    facts = facts or ExactTotals.of_counts(measurements.plan, found)
    for category in interests.categories:
        area = estimate_areas(found, category, interests.spine, errors)
        if area.std_error is not None:
            allowed = category_range(facts, category)
            area = replace(area, std_error=settled(area.std_error, allowed, area.counts))
        areas.append(area)
    return TableEstimates(_settled(found, facts), areas)


def _settled(estimates: Estimates, facts: ExactTotals | None) -> Estimates:
    if estimates.std_error is None:
        return estimates
    std_error = [
        settled(error, level_range(facts, level), estimates.counts[level])
        for level, error in enumerate(estimates.std_error)
    ]
    return replace(estimates, std_error=tuple(std_error))


def with_other_method(
    spec: Mapping[str, Any], plan: Plan, method: str, penalty: Fraction | None
) -> tuple[dict[str, Any], Plan]:
    """For kinds whose methods differ in nothing but their name."""
    if penalty is not None:
        raise RunFolderError("Only flows have methods with a penalty.")
    estimate = {**spec.get("estimate", {}), "method": method}
    return {**spec, "estimate": estimate}, plan.with_method(method)
