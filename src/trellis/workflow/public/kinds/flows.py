"""The public half of a release of flows: levels are never all held at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.evaluate.report import FLOW_SECTIONS, Sections
from trellis.execution.progress import in_parts, tell_done
from trellis.model.plans.kinds.flows import DEFAULT_PENALTY, FLOW_METHODS, MOST_PENALTY, FlowDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import flow_range, settled
from trellis.planning.forecast.expected_error import with_own_noise
from trellis.release.documents.data_package import write_data_package
from trellis.release.tables.flows import flow_guide, write_flow_tables
from trellis.storage.flows import estimate_table, estimates_file, read_flow_level, table_writer
from trellis.workflow.public.facts import FlowFacts
from trellis.workflow.public.protocol import MeasuredRun
from trellis.workflow.public.run_folder import RunFolder


class PublicFlows:
    """One file of estimates per level, written and read run by run; nothing is handed on."""

    sections: Sections = FLOW_SECTIONS

    def facts(self, folder: RunFolder, plan: Plan) -> FlowFacts:
        return FlowFacts.read(folder, plan)

    def estimate(self, run: MeasuredRun[FlowFacts], into: Path) -> None:
        from trellis.estimate.flows.levels import estimate_flow_levels  # compiles

        plan, total = run.plan, 0
        tree, measured = run.facts.tree(plan), run.folder.measurements
        for level, runs in estimate_flow_levels(measured, plan, tree, run.identity.tie_seed):
            with table_writer(estimates_file(into, plan.levels[level])) as file:
                for flows in runs:
                    total = total if level else int(flows.counts.sum())
                    allowed = flow_range(plan, level, total)
                    std_error = settled(flows.std_error, allowed, flows.counts)
                    file.write(estimate_table(replace(flows, std_error=std_error)))
            tell_done((level + 1) / len(plan.levels))

    def estimates(self, run: MeasuredRun[FlowFacts]) -> None:
        del run

    def release(self, run: MeasuredRun[FlowFacts], estimates: None, into: Path) -> None:
        del estimates
        plan, tree, rows, total = run.plan, run.facts.tree(run.plan), [], 0
        for level, name in in_parts(enumerate(plan.levels)):
            flows = read_flow_level(run.folder.estimates, name)
            rows.append(len(flows.nodes))
            total = total if level else int(flows.counts.sum())
            allowed = flow_range(plan, level, total)
            write_flow_tables(into, plan, tree, level, flows, allowed, run.identity.csv)
        (into / "README.md").write_text(flow_guide(plan, rows), encoding="utf-8")
        write_data_package(into, plan)

    def with_method(
        self,
        spec: Mapping[str, Any],
        run: MeasuredRun[FlowFacts],
        method: str,
        penalty: Fraction | None,
    ) -> tuple[dict[str, Any], Plan]:
        """Only sparse methods have a penalty."""
        design = run.plan.design_as(FlowDesign)
        penalty = _penalty(method, penalty, design.penalty)
        estimate = {"method": method} | ({} if penalty is None else {"penalty": str(penalty)})
        design = replace(design, penalty=penalty)
        plan = replace(run.plan.with_method(method), design=design)
        return {**spec, "estimate": estimate}, with_own_noise(plan)

    def left_out(self, spec: Mapping[str, Any], plan: Plan, method: str) -> list[str]:
        del spec, plan, method
        return []


def _penalty(method: str, wanted: Fraction | None, planned: Fraction | None) -> Fraction | None:
    if not FLOW_METHODS[method].has_penalty:
        if wanted is not None:
            raise RunFolderError(f"The method {method!r} has no penalty; sparse and gls_sparse do.")
        return None
    penalty = next(p for p in (wanted, planned, Fraction(DEFAULT_PENALTY)) if p is not None)
    if not 0 <= penalty <= MOST_PENALTY:
        raise RunFolderError(f"A penalty lies between 0 and {MOST_PENALTY}, not at {penalty}.")
    return penalty


PUBLIC = PublicFlows()
