"""The public half of means."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fifth_kind.design import MeansDesign
from trellis.evaluate import sections
from trellis.evaluate.html import paragraph, section, table
from trellis.evaluate.public_run import PublicRun
from trellis.evaluate.report import Sections
from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates
from trellis.release.documents.data_package import write_data_package
from trellis.release.tables.counts import write_tables
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.interests import Interests
from trellis.workflow.public.kinds.tables import (
    TableEstimates,
    estimate_tables,
    measurements_of,
    read_table_estimates,
    with_other_method,
    write_table_estimates,
)
from trellis.workflow.public.protocol import MeasuredRun
from trellis.workflow.public.run_folder import RunFolder


def means_of(bound: int, parts: np.ndarray) -> np.ndarray:
    """From areas x (sum, missing) to a mean each; of an empty area, nothing is known."""
    together = parts.sum(axis=1)
    return np.where(together > 0, bound * parts[:, 0] / np.maximum(together, 1), np.nan)


def means(run: PublicRun) -> str:
    """The means of the root's children, in the report."""
    plan = run.plan
    shown = run.table(plan.levels[1])
    found = means_of(plan.design_as(MeansDesign).at_most, shown["count"].to_numpy().reshape(-1, 2))
    rows = [[c, f"{m:.2f}"] for c, m in zip(shown["geocode"].to_pylist()[::2], found, strict=True)]
    return section("Means", paragraph("Of every area."), table(["area", "mean"], rows))


class PublicMeans:
    """Sums, and what is missing to the bound; means follow."""

    sections: Sections = (
        sections.what_is_released, means, sections.what_is_protected,
        sections.what_is_not_protected, sections.what_an_attacker_can_learn,
        sections.how_private_it_is, sections.where_the_budget_went, sections.how_to_cite,
    )  # fmt: skip

    def facts(self, folder: RunFolder, plan: Plan) -> PublicFacts:
        return PublicFacts.read(folder, plan)

    def estimate(self, run: MeasuredRun, into: Path) -> TableEstimates:
        found = estimate_tables(
            measurements_of(run), run.hierarchy, Interests(), run.identity.tie_seed
        )
        write_table_estimates(into, found)
        return found

    def estimates(self, run: MeasuredRun) -> TableEstimates:
        return read_table_estimates(run)

    def release(self, run: MeasuredRun, estimates: TableEstimates, into: Path) -> None:
        levels: Estimates = estimates.levels
        write_tables(into, run.plan, levels, None, run.identity.csv)
        bound = run.plan.design_as(MeansDesign).at_most
        guide = f"The mean of an area is {bound} sum / (sum + missing).\n"
        (into / "README.md").write_text(guide, encoding="utf-8")
        write_data_package(into, run.plan)

    def with_method(
        self, spec: Mapping[str, Any], run: MeasuredRun, method: str, penalty: Fraction | None
    ) -> tuple[dict[str, Any], Plan]:
        return with_other_method(spec, run.plan, method, penalty)

    def left_out(self, spec: Mapping[str, Any], plan: Plan, method: str) -> list[str]:
        del spec, plan, method
        return []


PUBLIC = PublicMeans()
