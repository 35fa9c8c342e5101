"""The registry of verification: what is checked of a run of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trellis.verify.counts import (
    areas,
    forecast,
    measurements,
    recomputed,
    scatter,
    spine,
    tables,
    whole_counts,
)
from trellis.verify.documents import data_package, deployment, guides, privacy_record, stamps
from trellis.verify.files import csv_tables, integrity, parquet_values, text_forms
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.flows import families as flow_families
from trellis.verify.flows import margins as flow_margins
from trellis.verify.flows import tables as flows
from trellis.verify.group_sizes import fitted, intervals
from trellis.verify.group_sizes import tables as group_sizes
from trellis.verify.histograms import centres as histogram_centres
from trellis.verify.histograms import constraint_rows
from trellis.verify.histograms import measurements as histogram_measurements
from trellis.verify.histograms import real_estimates as real_histograms
from trellis.verify.histograms import scatter as histogram_scatter
from trellis.verify.histograms import tables as histograms
from trellis.verify.histograms.linear import estimates as histogram_estimates
from trellis.verify.histograms.whole import families as histogram_families
from trellis.verify.histograms.whole import fit
from trellis.verify.plan import compare, price, second_opinion
from trellis.verify.plan import forecast as plan_forecast
from trellis.verify.report import page

Check = Callable[[RunFiles], Iterator[str]]

_COMMON: tuple[Check, ...] = (
    integrity.inventory,
    integrity.hashes,
    integrity.identity,
    text_forms.written,
    parquet_values.values,
    stamps.stamps,
    compare.planned,
    price.budget,
    second_opinion.second_opinion,
    privacy_record.privacy,
    deployment.deployment,
    guides.guide,
    data_package.data_package,
    page.report,
)
_COUNTS: tuple[Check, ...] = (
    tables.hierarchy,
    measurements.measurements,
    scatter.scatter,
    tables.columns,
    tables.signs,
    tables.sums,
    tables.intervals,
    tables.invariants,
    tables.estimates,
    recomputed.linear_estimates,
    recomputed.standard_errors,
    forecast.forecast,
    csv_tables.csv,
)
_HISTOGRAMS: tuple[Check, ...] = (
    tables.hierarchy,
    histogram_measurements.measured_histograms,
    histogram_scatter.histogram_scatter,
    histograms.histogram_columns,
    histograms.histogram_margins,
    histogram_centres.histogram_centres,
    plan_forecast.nothing_foreseen,
    histogram_estimates.histogram_estimates,
    csv_tables.csv,
)
_BY_KIND: dict[str, tuple[Check, ...]] = {
    "counts": (*_COUNTS, whole_counts.whole_counts),
    "group_sizes": (
        *_COUNTS,
        group_sizes.monotone,
        group_sizes.statistics,
        fitted.fitted_sizes,
        intervals.statistic_intervals,
    ),
    "histogram": (
        *_HISTOGRAMS,
        histograms.histogram_counts,
        fit.fit,
        histogram_families.whole_counts,
        histograms.exact_totals,
        histograms.structural_zeros,
        histograms.constraints,
        constraint_rows.constraint_rows,
        histograms.edit_rules,
        histograms.microdata,
    ),
    "real_histogram": (
        *_HISTOGRAMS,
        real_histograms.real_counts,
        real_histograms.real_totals,
        real_histograms.no_rules,
    ),
    "flows": (
        flows.flow_tree,
        plan_forecast.own_noise,
        flows.flow_measurements,
        flows.flow_tables,
        flows.flow_sums,
        flow_margins.flow_margins,
        flow_margins.flow_intervals,
        flow_families.flow_descent,
        flow_families.flow_counts,
        flows.flow_matrix,
        csv_tables.csv,
    ),
}

_CHECKS_WITH: dict[str, Callable[[RunFiles], Iterator[str]]] = {
    "spine": spine.spine,
    "areas": areas.areas,
}


def checks_of(run: RunFiles) -> tuple[Check, ...]:
    """The checks of a run, by its kind and by what its plan has."""
    found = _COMMON + _BY_KIND.get(_kind(run), _COUNTS)
    return found + tuple(check for key, check in _CHECKS_WITH.items() if key in _plan_keys(run))


def _kind(run: RunFiles) -> str:
    try:
        if "histogram" in run.plan:
            return "histogram" if run.is_whole else "real_histogram"
        return str(run.plan["kind"])
    except (Unreadable, KeyError, TypeError):
        return ""  # the checks say what is wrong with the plan


def _plan_keys(run: RunFiles) -> set[str]:
    try:
        return set(run.plan)
    except Unreadable:
        return set()
