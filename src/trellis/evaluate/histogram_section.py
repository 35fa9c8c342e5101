"""The sections of a report that only a release of histograms has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trellis.evaluate.accuracy import table_errors
from trellis.evaluate.charts import bar_chart
from trellis.evaluate.html import bullets, link, paragraph, picture, section, table
from trellis.evaluate.public_run import RELEASE, PublicRun
from trellis.evaluate.sections import margin_section
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.tables.codebook import bounds_in_words, factors_in_words
from trellis.model.tables.queries import TOTAL, parse_query
from trellis.storage.atomic import read_json
from trellis.storage.constraints import read_constraints
from trellis.wording import html as shell
from trellis.wording import report as words


def published_tables(run: PublicRun) -> str:
    """Each table with its size and its standard errors."""
    plan = run.plan
    rows, totals = [], []
    errors = {found.name: found for found in table_errors(run)}
    for level, query in plan.design_as(HistogramDesign).tables:
        found = errors.get(f"{level}/{query.replace(' * ', ',')}")
        if query == TOTAL and found is not None:
            totals.append((level, found.median))
        areas, cells = plan.areas[plan.levels.index(level)], parse_query(plan.schema, query).n_cells
        shown = ["-"] * 3 if found is None else [
            f"{x:.3g}" for x in (found.least, found.median, found.most)
        ]  # fmt: skip
        rows.append([level, query, f"{areas:,}", f"{cells:,}", *shown])
    return section(
        words.PUBLISHED,
        paragraph(words.PUBLISHED_TEXT.format(counts=_published(plan))),
        picture(bar_chart(words.MEDIAN_OF_TOTALS, "", totals)) if totals else "",
        paragraph(words.ERRORS_ARE_IN.format(unit=plan.design.counted_in)),
        table(words.PUBLISHED_COLUMNS, rows),
    )


def _published(plan: Plan) -> str:
    return words.WHOLE_COUNTS if plan.method.whole else words.REAL_COUNTS


def what_is_counted(run: PublicRun) -> str:
    """The attributes with their categories, and the records made from the counts."""
    described = factors_in_words(run.plan.schema).items()
    factors = [words.FACTOR.format(name=name, text=text) for name, text in described]
    file, microdata = "microdata.parquet", ""
    if (run.path / RELEASE / file).exists():
        linked = link(f"../{RELEASE}/{file}", words.MICRODATA)
        microdata = shell.MICRODATA.format(link=linked, text=words.MICRODATA_TEXT)
    return section(words.COUNTED, bullets(factors), microdata)


def what_the_counts_keep(run: PublicRun) -> str:
    """Rules and bounds, and the audit of edit rules."""
    plan = run.plan
    if not plan.method.whole:
        return ""
    zeros = plan.design_as(HistogramDesign).structural_zeros
    kept = [words.ZERO.format(rule=rule) for rule in zeros]
    kept += bounds_in_words(read_constraints(run.path, plan, run.hierarchy))
    audit = run.path / RELEASE / "edit_rules.json"
    lines = read_json(audit) if audit.exists() else []
    rows = [
        [line["level"], line["rule"], f"{line['applies_to']:,}", f"{line['broken_in']:,}"]
        for line in lines
    ]
    if not kept and not rows:
        return ""
    return section(
        words.RULES,
        bullets(kept) if kept else "",
        paragraph(_edit_rules(plan.design_as(HistogramDesign))) if rows else "",
        table(words.AUDIT_COLUMNS, rows) if rows else "",
    )


def _edit_rules(histogram: HistogramDesign) -> str:
    return words.ENFORCED if histogram.enforce_edit_rules else words.NOT_ENFORCED


def how_to_read_a_histogram_margin(run: PublicRun) -> str:
    """An example, from the first table that has a margin."""
    for level, query in run.plan.design_as(HistogramDesign).tables:
        found = run.table(f"{level}/{query.replace(' * ', ',')}")
        if found["lower"].null_count:
            return ""
        wide = np.flatnonzero(found["lower"].to_numpy() < found["upper"].to_numpy())
        if wide.size:
            row = found.slice(int(wide[0]), 1).to_pylist()[0]
            return margin_section(run, level, row["geocode"], _cell(row), row)
    return ""


def _cell(row: Mapping[str, Any]) -> str:
    """The categories of a row of a table."""
    categories = [str(v) for k, v in row.items() if k not in PublicRun.COMMON_COLUMNS]
    return ", ".join(categories) or TOTAL
