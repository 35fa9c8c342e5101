"""The page beside the tables of histograms that says how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trellis.model.plan import Plan
from trellis.release.histogram_tables import table_name
from trellis.release.reading_guide import (
    ABOUT_ERRORS,
    levels_in_markdown,
    protected_in_markdown,
)


def histogram_guide(plan: Plan, audit: Sequence[Mapping[str, Any]]) -> str:
    """Markdown for data users."""
    histogram = plan.histogram
    assert histogram is not None
    files = "\n".join(
        f"- `{level}/{table_name(query)}.parquet`" for level, query in histogram.tables
    )
    microdata = (
        "\n`microdata.parquet` has one row per record: the codes of its areas, and its attributes. "
        "Counting its rows gives every table here. The rows are made from noisy counts; none is "
        "anybody's record.\n"
        if histogram.microdata
        else ""
    )
    return f"""# {plan.release}

One table for each level and query, as Parquet; some also as CSV.

{levels_in_markdown(plan)}

{files}

Columns: `geocode` (the area), `level`, the attributes that the query keeps (the cell), `count`
(the published count), `std_error`, `lower`, `upper`. Counts of areas add up to the count of the
area above them, in every cell, and cells add up to the cells of coarser tables.
{microdata}
## Margins of error

{ABOUT_ERRORS[plan.method]} The confidence is {plan.confidence}.

Noise was added once, to protect people. It is independent of errors that the data had before.
{_rules(plan)}{_audit(plan, audit)}
{protected_in_markdown(plan)}
"""


def _rules(plan: Plan) -> str:
    assert plan.histogram is not None
    if not plan.histogram.structural_zeros:
        return ""
    rules = "\n".join(f"- `{rule}`" for rule in plan.histogram.structural_zeros)
    return f"\n## What cannot be\n\nThese cells are empty everywhere:\n\n{rules}\n"


def _audit(plan: Plan, audit: Sequence[Mapping[str, Any]]) -> str:
    assert plan.histogram is not None
    if not audit:
        return ""
    about = (
        "People were exchanged between areas with the same area above them, so that these rules "
        "hold where sums and stated bounds allow. Areas that still break one are counted here."
        if plan.histogram.enforce_edit_rules
        else "These rules are checked and not enforced; areas that break one do so because of the "
        "noise, or did so in the records."
    )
    rows = [
        f"| `{line['rule']}` | {line['level']} | {line['applies_to']:,} | {line['broken_in']:,} |"
        for line in audit
    ]
    head = ["| rule | level | areas it applies to | areas that break it |", "|---|---|---|---|"]
    table = "\n".join([*head, *rows])
    return f"\n## Edit rules\n\n{about}\n\n{table}\n"
