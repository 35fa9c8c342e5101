"""The reading guide of a release of histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trellis.model.plans.kinds.histograms import HistogramDesign
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
from trellis.wording import guides as words


def histogram_guide(
    plan: Plan,
    constraints: Constraints | None,
    audit: Sequence[Mapping[str, Any]],
    distance: float,
) -> str:
    """Markdown for data users; `distance` is that of the worst family to its best fit."""
    return words.HISTOGRAMS.format(
        release=plain(plan.release),
        files=_files(plan),
        microdata=words.MICRODATA if plan.design_as(HistogramDesign).microdata else "",
        factors=_factors(plan),
        errors=errors_in_markdown(plan),
        fit=_fit(plan, distance),
        rules=_rules(plan),
        bounds=_bounds(constraints),
        audit=_audit(plan, audit),
        codes=_codes(plan),
        protected=protected_in_markdown(plan),
    )


def _files(plan: Plan) -> str:
    """Every table with its size; levels without one are listed too."""
    rows = [words.TABLES_HEAD]
    for level, areas in zip(plan.levels, plan.areas, strict=True):
        queries = [
            query for of_level, query in plan.design_as(HistogramDesign).tables if of_level == level
        ]
        for query in queries:
            cells = parse_query(plan.schema, query).n_cells
            file = code(f"{level}/{table_name(query)}.parquet")
            rows.append(words.TABLE.format(level=plain(level), areas=areas, file=file, cells=cells))
        if not queries:
            rows.append(words.NO_TABLE.format(level=plain(level), areas=areas))
    return "\n".join(rows)


def _factors(plan: Plan) -> str:
    described = factors_in_words(plan.schema).items()
    return "\n".join(
        words.FACTOR.format(name=code(name), text=plain(text)) for name, text in described
    )


def _codes(plan: Plan) -> str:
    """Of the first table; a release of microdata alone has no CSV files."""
    if not plan.design_as(HistogramDesign).tables:
        return ""
    level, query = plan.design_as(HistogramDesign).tables[0]
    factors = [factor.name for factor in parse_query(plan.schema, query).factors]
    file = f"{level}/{table_name(query)}.csv"
    return words.HISTOGRAM_CODES.format(codes=codes_in_markdown(file, ["geocode", *factors]))


def _bounds(constraints: Constraints | None) -> str:
    if constraints is None or not constraints.linear:
        return ""
    lines = [words.LINE.format(text=plain(sentence)) for sentence in bounds_in_words(constraints)]
    return words.BOUNDS.format(bounds="\n".join(lines))


def _rules(plan: Plan) -> str:
    if not plan.method.whole:
        return words.NO_RULES
    if not (zeros := plan.design_as(HistogramDesign).structural_zeros):
        return ""
    rules = [words.LINE.format(text=code(rule)) for rule in zeros]
    return words.ZEROS.format(rules="\n".join(rules))


def _fit(plan: Plan, distance: float) -> str:
    if distance <= FIT_TOLERANCE:
        return ""
    errors = words.FIT_ERRORS if plan.method.has_variances else ""
    return words.FIT.format(distance=distance, usual=FIT_TOLERANCE, errors=errors)


def _audit(plan: Plan, audit: Sequence[Mapping[str, Any]]) -> str:
    if not audit:
        return ""
    enforced = plan.design_as(HistogramDesign).enforce_edit_rules
    rows = [
        words.AUDITED.format(
            rule=code(line["rule"]),
            level=plain(line["level"]),
            applies_to=line["applies_to"],
            broken_in=line["broken_in"],
        )
        for line in audit
    ]
    about = words.ENFORCED if enforced else words.NOT_ENFORCED
    return words.AUDIT.format(about=about, rows="\n".join(rows))
