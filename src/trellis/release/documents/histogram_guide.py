"""The page beside the tables of histograms that says how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trellis.model.plans.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.histogram_estimates import FIT_TOLERANCE
from trellis.model.tables.codebook import bounds_in_words, factors_in_words
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.queries import parse_query
from trellis.release.documents.markdown import code, plain
from trellis.release.documents.reading_guide import (
    codes_in_markdown,
    errors_in_markdown,
    protected_in_markdown,
)
from trellis.release.tables.histograms import table_name


def histogram_guide(
    plan: Plan,
    constraints: Constraints | None,
    audit: Sequence[Mapping[str, Any]],
    distance: float,
) -> str:
    """Markdown for data users; `distance` is that of the worst family to its best fit."""
    histogram = plan.design_as(HistogramDesign)
    microdata = (
        "\n`microdata.parquet` has one row per record: the codes of its areas, and its attributes. "
        "Counting its rows gives every table here. The rows are made from noisy counts; none is "
        "anybody's record.\n"
        if histogram.microdata
        else ""
    )
    return f"""# {plain(plan.release)}

One table for each level and query, as Parquet; some also as CSV.

{_files(plan)}

Columns: `geocode` (the area), `level`, the attributes that the query keeps (the cell), `count`
(the published count), `std_error`, `lower`, `upper`. Counts of areas add up to the count of the
area above them, in every cell, and cells add up to the cells of coarser tables.
{microdata}
## Attributes

{_factors(plan)}

{errors_in_markdown(plan)}
{_fit(plan, distance)}{_rules(plan)}{_bounds(constraints)}{_audit(plan, audit)}{_codes(plan)}
{protected_in_markdown(plan)}
"""


def _files(plan: Plan) -> str:
    """Every table with its size; levels without one are listed too."""
    rows = ["| level | areas | table | cells of each area |", "|---|---|---|---|"]
    for level, areas in zip(plan.levels, plan.areas, strict=True):
        queries = [
            query for of_level, query in plan.design_as(HistogramDesign).tables if of_level == level
        ]
        for query in queries:
            cells = parse_query(plan.schema, query).n_cells
            file = code(f"{level}/{table_name(query)}.parquet")
            rows.append(f"| {plain(level)} | {areas:,} | {file} | {cells:,} |")
        if not queries:
            rows.append(f"| {plain(level)} | {areas:,} | none | |")
    return "\n".join(rows)


def _factors(plan: Plan) -> str:
    words = factors_in_words(plan.schema).items()
    return "\n".join(f"- {code(name)}: {plain(text)}" for name, text in words)


def _codes(plan: Plan) -> str:
    """Of the first table; a release of microdata alone has no CSV files."""
    if not plan.design_as(HistogramDesign).tables:
        return ""
    level, query = plan.design_as(HistogramDesign).tables[0]
    factors = [factor.name for factor in parse_query(plan.schema, query).factors]
    file = f"{level}/{table_name(query)}.csv"
    return f"\n{codes_in_markdown(file, ['geocode', *factors])}\n"


def _bounds(constraints: Constraints | None) -> str:
    if constraints is None or not constraints.linear:
        return ""
    lines = "\n".join(f"- {plain(sentence)}" for sentence in bounds_in_words(constraints))
    return (
        "\n## Bounds\n\nThe counts keep these; the bounds are in `../constraints.parquet`.\n\n"
        f"{lines}\n"
    )


def _rules(plan: Plan) -> str:
    if not plan.method.whole:
        return (
            "\nNo rule or bound is imposed on the estimates: that is what keeps them unbiased. A "
            "cell where\nnobody can be may have a small count of either sign. Sums and averages "
            "of many counts are\nunbiased too; do not clip counts at zero before adding them up.\n"
        )
    if not plan.design_as(HistogramDesign).structural_zeros:
        return ""
    rules = "\n".join(
        f"- {code(rule)}" for rule in plan.design_as(HistogramDesign).structural_zeros
    )
    return f"\n## What cannot be\n\nThese cells are empty everywhere:\n\n{rules}\n"


def _fit(plan: Plan, distance: float) -> str:
    if distance <= FIT_TOLERANCE:
        return ""
    errors = (
        " Standard errors\nand intervals do not depend on it: they are those of the linear "
        "estimates."
        if plan.method.has_variances
        else ""
    )
    return (
        "\n## How well the counts fit\n\nThe counts of areas below one area are those that fit the "
        "noisy measurements best, rounded. In at\nleast one such family the solver stopped early: "
        f"before rounding, its counts may be up to {distance:.2g} (root\nmean square) away from "
        f"the best fit, where {FIT_TOLERANCE:g} is usual.{errors}\n"
    )


def _audit(plan: Plan, audit: Sequence[Mapping[str, Any]]) -> str:
    if not audit:
        return ""
    about = (
        "People were exchanged between areas with the same area above them, so that these rules "
        "hold where sums and stated bounds allow. Areas that still break one are counted here."
        if plan.design_as(HistogramDesign).enforce_edit_rules
        else "These rules are checked and not enforced; areas that break one do so because of the "
        "noise, or did so in the records."
    )
    rows = [
        f"| {code(line['rule'])} | {plain(line['level'])} | {line['applies_to']:,} "
        f"| {line['broken_in']:,} |"
        for line in audit
    ]
    head = ["| rule | level | areas it applies to | areas that break it |", "|---|---|---|---|"]
    table = "\n".join([*head, *rows])
    return f"\n## Edit rules\n\n{about}\n\n{table}\n"
