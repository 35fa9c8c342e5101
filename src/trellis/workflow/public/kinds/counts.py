"""The public half of a release of counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import ExactTotals
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.release.documents.data_package import write_data_package
from trellis.release.documents.reading_guide import reading_guide
from trellis.release.tables.areas import write_area_tables
from trellis.release.tables.counts import write_tables
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.kinds.tables import (
    PublicTables,
    TableEstimates,
    estimate_tables,
    measurements_of,
    with_other_method,
    write_table_estimates,
)
from trellis.workflow.public.protocol import MeasuredRun


class PublicCounts(PublicTables):
    """Counts on a tree or a spine, with areas of interest."""

    def estimate(self, run: MeasuredRun[PublicFacts], into: Path) -> TableEstimates:
        found = estimate_tables(
            measurements_of(run), run.hierarchy, run.facts.interests, run.identity.tie_seed
        )
        write_table_estimates(into, found)
        return found

    def release(self, run: MeasuredRun[PublicFacts], estimates: TableEstimates, into: Path) -> None:
        plan, csv = run.plan, run.identity.csv
        facts = ExactTotals.of_counts(plan, estimates.levels)
        write_tables(into, plan, estimates.levels, facts, csv)
        write_area_tables(into, plan, estimates.areas, facts, csv)
        (into / "README.md").write_text(reading_guide(plan), encoding="utf-8")
        write_data_package(into, plan)

    def with_method(
        self,
        spec: Mapping[str, Any],
        run: MeasuredRun[PublicFacts],
        method: str,
        penalty: Fraction | None,
    ) -> tuple[dict[str, Any], Plan]:
        changed, plan = with_other_method(spec, run.plan, method, penalty)
        if plan.spine is not None:  # the methods that work there have the same linear estimates
            return changed, replace(plan, forecast=run.plan.forecast)
        plan = with_expected_errors(plan, run.hierarchy)
        effects = run.plan.forecast.effects
        return changed, replace(plan, forecast=replace(plan.forecast, effects=effects))


PUBLIC = PublicCounts()
