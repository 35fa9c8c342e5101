"""The section of a report that lists the tables of a release of histograms."""

from __future__ import annotations

import numpy as np

from trellis.evaluate.charts import bar_chart
from trellis.evaluate.html import paragraph, picture, section, table
from trellis.evaluate.public_run import PublicRun
from trellis.model.plan import TOTAL, Plan
from trellis.model.queries import parse_query


def published_tables(run: PublicRun) -> str:
    """Each table with its size and the median of its standard errors."""
    plan = run.plan
    assert plan.histogram is not None
    rows, totals = [], []
    for level, query in plan.histogram.tables:
        name = f"{level}/{query.replace(' * ', ',')}"
        errors = run.table(name, ["std_error"])["std_error"]
        median = None if errors.null_count else float(np.median(errors.to_numpy()))
        if query == TOTAL and median is not None:
            totals.append((level, median))
        areas, cells = plan.areas[plan.levels.index(level)], parse_query(plan.schema, query).n_cells
        shown = "-" if median is None else f"{median:.3g}"
        rows.append([level, query, f"{areas:,}", f"{cells:,}", shown])
    return section(
        "What is published, and how accurate it is",
        paragraph(
            "A standard error belongs to the best linear unbiased estimate of a count, made from "
            f"all measurements. {_published(plan)} The tables are in the folder release, one for "
            "each level and query."
        ),
        picture(bar_chart("Median standard error of a total", "", totals)) if totals else "",
        table(["level", "query", "areas", "cells", "median std error"], rows),
    )


def _published(plan: Plan) -> str:
    if plan.is_whole:
        return "The published count is whole and not negative."
    return "The published count is this estimate: a real number, which may be negative."
