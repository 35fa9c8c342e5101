"""The public half of a release of histograms: estimates and tables from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.estimate.histograms.estimators import (
    estimate_gls,
    estimate_gls_topdown,
    estimate_topdown,
)
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.known import known_facts
from trellis.evaluate.report import HISTOGRAM_SECTIONS, Sections
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.histogram_estimates import HistogramEstimates
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.rules import enforced_rules
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.release.documents.data_package import write_data_package
from trellis.release.documents.histogram_guide import histogram_guide
from trellis.release.tables.edit_rules import audit_edit_rules
from trellis.release.tables.histograms import write_histogram_tables
from trellis.release.tables.microdata import write_microdata
from trellis.storage.atomic import write_json
from trellis.storage.histogram_estimates import read_histogram_estimates, write_histogram_estimates
from trellis.storage.histograms import MeasuredHistograms
from trellis.workflow.public.facts import BoundedFacts
from trellis.workflow.public.kinds.tables import with_other_method
from trellis.workflow.public.protocol import MeasuredRun
from trellis.workflow.public.run_folder import RunFolder


class PublicHistograms:
    """Tables by level and query, kept under rules and bounds, and microdata."""

    sections: Sections = HISTOGRAM_SECTIONS

    def facts(self, folder: RunFolder, plan: Plan) -> BoundedFacts:
        return BoundedFacts.read(folder, plan)

    def estimate(self, run: MeasuredRun[BoundedFacts], into: Path) -> HistogramEstimates:
        plan, bounds = run.plan, run.facts.constraints
        evidence = MeasuredHistograms(run.folder.measurements, plan, run.hierarchy)
        known = () if plan.method.looks_below else evidence.decisive_counts()
        facts = facts_for_margins(plan, evidence, bounds)
        seed = run.identity.tie_seed
        estimates = estimate_histograms(plan, evidence, bounds, facts, seed, known)
        write_histogram_estimates(into, estimates)
        return estimates

    def estimates(self, run: MeasuredRun[BoundedFacts]) -> HistogramEstimates:
        return read_histogram_estimates(run.folder.estimates, run.plan, run.hierarchy)

    def release(
        self, run: MeasuredRun[BoundedFacts], estimates: HistogramEstimates, into: Path
    ) -> None:
        plan, bounds = run.plan, run.facts.constraints
        evidence = MeasuredHistograms(run.folder.measurements, plan, run.hierarchy)
        facts = facts_for_margins(plan, evidence, bounds)
        write_histogram_tables(into, plan, estimates, facts, run.identity.csv)
        if plan.design_as(HistogramDesign).microdata:
            write_microdata(into / "microdata.parquet", estimates)
        audit = audit_edit_rules(plan, estimates)
        if audit:
            write_json(into / "edit_rules.json", audit)
        guide = histogram_guide(plan, bounds, audit, estimates.distance)
        (into / "README.md").write_text(guide, encoding="utf-8")
        write_data_package(into, plan)

    def with_method(
        self,
        spec: Mapping[str, Any],
        run: MeasuredRun[BoundedFacts],
        method: str,
        penalty: Fraction | None,
    ) -> tuple[dict[str, Any], Plan]:
        changed, plan = with_other_method(spec, run.plan, method, penalty)
        return (changed, plan) if plan.method.whole else without_rules(changed, plan)

    def left_out(self, spec: Mapping[str, Any], plan: Plan, method: str) -> list[str]:
        return [] if plan.design.methods[method].whole else stated_rules(spec)


def facts_for_margins(
    plan: Plan, evidence: HistogramEvidence, constraints: Constraints | None
) -> HistogramFacts | None:
    """What margins may use; None for a method without margins.

    Bounds on the output alone say nothing about the records.
    """
    if not plan.method.has_variances:
        return None
    stated = constraints or Constraints.none(plan.schema.n_cells)
    bounds = stated.of_records(zeros=plan.design_as(HistogramDesign).zeros_bind_records)
    return known_facts(evidence, bounds)


def estimate_histograms(
    plan: Plan,
    evidence: HistogramEvidence,
    constraints: Constraints | None,
    facts: HistogramFacts | None,
    tie_seed: int,
    known: Sequence[SparseCounts] = (),
) -> HistogramEstimates:
    """By the method of the plan; `known` are counts that decided what was measured."""
    design = plan.design_as(HistogramDesign)
    if not plan.method.whole:
        margins = estimate_gls(evidence, marginals=design.tables, facts=facts)
        return HistogramEstimates(evidence.hierarchy, plan.schema, (), margins)
    kept = {
        "constraints": constraints,
        "edit_rules": enforced_rules(plan.schema, design),
        "passes": design.passes,
    }
    if not plan.method.looks_below:
        return estimate_topdown(evidence, tie_seed, known=known, **kept)
    return estimate_gls_topdown(evidence, tie_seed, marginals=design.tables, facts=facts, **kept)


RULES = (
    "structural_zeros", "edit_rules", "constraints", "estimate.edit_rules", "estimate.passes",
    "output.microdata",
)  # fmt: skip
"""Keys of a spec that ask for whole counts."""


def stated_rules(spec: Mapping[str, Any]) -> list[str]:
    """Those of `RULES` that a spec states."""
    places = [key.rpartition(".") for key in RULES]
    return [
        group + dot + key for group, dot, key in places if (spec[group] if dot else spec).get(key)
    ]


def without_rules(spec: Mapping[str, Any], plan: Plan) -> tuple[dict[str, Any], Plan]:
    """Spec and plan for a method that keeps no rules."""
    histogram = plan.design_as(HistogramDesign)
    if not histogram.tables:
        raise RunFolderError("This run publishes no tables, and method gls publishes nothing else.")
    kept = {key: value for key, value in spec.items() if key not in RULES}
    for group in ("estimate", "output"):
        kept[group] = {k: v for k, v in spec[group].items() if f"{group}.{k}" not in RULES}
    plain = HistogramDesign(histogram.tables, ordered=histogram.ordered)
    return kept, replace(plan, design=plain)


PUBLIC = PublicHistograms()
