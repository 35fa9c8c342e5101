"""The public half of a release of group sizes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.estimate.group_sizes.estimator import group_numbers
from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import ExactTotals
from trellis.model.results.measurements import Measurements
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.release.documents.data_package import write_data_package
from trellis.release.tables.counts import write_tables
from trellis.release.tables.group_sizes import size_guide, write_statistics
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.interests import Interests
from trellis.workflow.public.kinds.tables import (
    PublicTables,
    TableEstimates,
    estimate_tables,
    measurements_of,
    with_other_method,
    write_table_estimates,
)
from trellis.workflow.public.protocol import MeasuredRun


class PublicGroupSizes(PublicTables):
    """Tables of groups by size, and statistics of sizes; numbers of groups are exact."""

    def estimate(self, run: MeasuredRun[PublicFacts], into: Path) -> TableEstimates:
        measured = measurements_of(run)
        found = estimate_tables(
            measured, run.hierarchy, Interests(), run.identity.tie_seed, _groups(measured)
        )
        write_table_estimates(into, found)
        return found

    def release(self, run: MeasuredRun[PublicFacts], estimates: TableEstimates, into: Path) -> None:
        plan, csv, measured = run.plan, run.identity.csv, measurements_of(run)
        write_tables(into, plan, estimates.levels, _groups(measured), csv)
        write_statistics(into, plan, estimates.levels, group_numbers(measured), csv)
        (into / "README.md").write_text(size_guide(plan, estimates.levels), encoding="utf-8")
        write_data_package(into, plan)

    def with_method(
        self,
        spec: Mapping[str, Any],
        run: MeasuredRun[PublicFacts],
        method: str,
        penalty: Fraction | None,
    ) -> tuple[dict[str, Any], Plan]:
        changed, plan = with_other_method(spec, run.plan, method, penalty)
        return changed, with_expected_errors(plan, run.hierarchy)


def _groups(measured: Measurements) -> ExactTotals:
    """The public numbers of groups of the leaves."""
    tree = measured.hierarchy
    groups = group_numbers(measured)[-1]
    return ExactTotals(tree, tree.leaf_level, groups, measured.plan.schema.n_cells)


PUBLIC = PublicGroupSizes()
