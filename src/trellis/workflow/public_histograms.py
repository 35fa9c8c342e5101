"""The public half of a release of histograms: estimates and tables from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trellis.errors import RunFolderError
from trellis.estimate.histograms.estimators import (
    estimate_gls,
    estimate_gls_topdown,
    estimate_topdown,
)
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.known import known_facts
from trellis.model.constraints import Constraints
from trellis.model.hierarchy import Hierarchy
from trellis.model.histogram_estimates import HistogramEstimates
from trellis.model.histogram_facts import HistogramFacts
from trellis.model.histograms import HistogramPlan
from trellis.model.plan import Plan
from trellis.model.rules import enforced_rules
from trellis.model.sparse_counts import SparseCounts
from trellis.release.data_package import write_data_package
from trellis.release.edit_rules import audit_edit_rules
from trellis.release.histogram_guide import histogram_guide
from trellis.release.histogram_tables import write_histogram_tables
from trellis.release.microdata import write_microdata
from trellis.storage.atomic import new_folder, remove_partials, write_json
from trellis.storage.constraints import read_constraints
from trellis.storage.histogram_estimates import read_histogram_estimates, write_histogram_estimates
from trellis.storage.histograms import MeasuredHistograms
from trellis.workflow.run_folder import RunFolder


def estimate_into(
    folder: RunFolder, plan: Plan, hierarchy: Hierarchy, tie_seed: int
) -> HistogramEstimates:
    """Estimates from the measurements, kept in the run folder."""
    evidence = MeasuredHistograms(folder.measurements, plan, hierarchy)
    constraints = read_constraints(folder.path, plan, hierarchy)
    known = evidence.decisive_counts() if plan.method == "topdown" else ()
    facts = facts_for_margins(plan, evidence, constraints)
    estimates = estimate_histograms(plan, evidence, constraints, facts, tie_seed, known)
    remove_partials(folder.estimates)
    with new_folder(folder.estimates) as partial:
        write_histogram_estimates(partial, estimates)
    return estimates


def facts_for_margins(
    plan: Plan, evidence: HistogramEvidence, constraints: Constraints | None
) -> HistogramFacts | None:
    """What margins may use; None for a method without margins.

    Bounds on the output alone say nothing about the records.
    """
    assert plan.histogram is not None
    if not plan.has_variances:
        return None
    stated = constraints or Constraints.none(plan.schema.n_cells)
    bounds = stated.of_records(zeros=plan.histogram.zeros_bind_records)
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
    assert plan.histogram is not None
    tables, passes = plan.histogram.tables, plan.histogram.passes
    if not plan.is_whole:
        margins = estimate_gls(evidence, marginals=tables, facts=facts)
        return HistogramEstimates(evidence.hierarchy, plan.schema, (), margins)
    rules = enforced_rules(plan.schema, plan.histogram)
    if plan.method == "topdown":
        found = estimate_topdown(
            evidence,
            tie_seed,
            constraints=constraints,
            edit_rules=rules,
            passes=passes,
            known=known,
        )
    else:
        found = estimate_gls_topdown(
            evidence,
            tie_seed,
            marginals=tables,
            constraints=constraints,
            edit_rules=rules,
            passes=passes,
            facts=facts,
        )
    return found


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
    histogram = plan.histogram
    assert histogram is not None
    if not histogram.tables:
        raise RunFolderError("This run publishes no table, and method gls nothing else.")
    kept = {key: value for key, value in spec.items() if key not in RULES}
    for group in ("estimate", "output"):
        kept[group] = {k: v for k, v in spec[group].items() if f"{group}.{k}" not in RULES}
    plain = HistogramPlan(histogram.tables, ordered=histogram.ordered)
    return kept, replace(plan, histogram=plain)


def kept_constraints(folder: RunFolder, plan: Plan, hierarchy: Hierarchy) -> Constraints | None:
    """The constraints with which a run began; None where there can be none."""
    if plan.histogram is None or not plan.is_whole:
        return None
    return read_constraints(folder.path, plan, hierarchy)


def kept_estimates(folder: RunFolder, plan: Plan, hierarchy: Hierarchy) -> HistogramEstimates:
    return read_histogram_estimates(folder.estimates, plan, hierarchy)


def write_histogram_release(
    folder: RunFolder, plan: Plan, estimates: HistogramEstimates, csv: bool | None
) -> None:
    assert plan.histogram is not None
    hierarchy = estimates.hierarchy
    constraints = kept_constraints(folder, plan, hierarchy)
    evidence = MeasuredHistograms(folder.measurements, plan, hierarchy)
    facts = facts_for_margins(plan, evidence, constraints)
    remove_partials(folder.release)
    with new_folder(folder.release) as partial:
        write_histogram_tables(partial, plan, estimates, facts, csv)
        if plan.histogram.microdata:
            write_microdata(partial / "microdata.parquet", estimates)
        audit = audit_edit_rules(plan, estimates)
        if audit:
            write_json(partial / "edit_rules.json", audit)
        guide = histogram_guide(plan, constraints, audit, estimates.distance)
        (partial / "README.md").write_text(guide, encoding="utf-8")
        write_data_package(partial, plan)
