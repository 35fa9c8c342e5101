"""The queries of a plan for histograms as text: what is measured on which level, how well."""

from __future__ import annotations

from fractions import Fraction

from trellis.cli.show.numbers import rounded, short
from trellis.cli.terminal import Terminal
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.queries import parse_query

LEAST_OF_A_PASS = Fraction(1, 50)
"""Of a level's share: with less, fixing the query first made errors larger in the benchmark."""


def show_queries(terminal: Terminal, plan: Plan, title: str) -> None:
    """One line per level and query, then what is published and which rules hold."""
    columns = ["level", "areas", "query", "cells", "share", "noise sd"]
    terminal.table(title, columns, [_row(plan, query) for query in plan.queries])
    histogram = plan.design_as(HistogramDesign)
    wasted = [
        q.level for q in plan.queries if q.noise is not None and _is_exact(plan, q.level, q.query)
    ]
    for level in wasted:
        terminal.result(f"Level {level!r} spends a share on totals that are published exactly.")
    for name in histogram.passes:
        terminal.result(f"Fixed first in each family: {name}.{_weak_pass(plan, name)}")
    if histogram.skips_unused:
        terminal.result(
            "Only the rows that topdown reads are measured; the whole budget is charged."
        )
    for rule in histogram.structural_zeros:
        terminal.result(f"Impossible: {rule}")
    for rule in histogram.edit_rules:
        terminal.result(f"{'Enforced' if histogram.enforce_edit_rules else 'Audited'}: {rule}")
    tables = ", ".join(f"{level}: {query}" for level, query in histogram.tables)
    terminal.result(f"Tables: {tables}." + (" Microdata." if histogram.microdata else ""))


def _row(plan: Plan, query: PlannedQuery) -> list[str]:
    areas = f"{plan.areas[plan.levels.index(query.level)]:,}"
    cells = f"{parse_query(plan.schema, query.query).n_cells:,}"
    if query.noise is None:
        return [query.level, areas, query.query, cells, "-", "exact"]
    sd = rounded(query.variance**0.5)
    return [query.level, areas, query.query, cells, short(query.share), sd]


def _weak_pass(plan: Plan, name: str) -> str:
    """On levels that spend little on a query, holding on to it does harm."""
    weak = []
    for level in plan.levels:
        noisy = [q for q in plan.queries if q.level == level and q.noise is not None]
        spent = sum(q.share for q in noisy if q.query == name)
        if noisy and spent < LEAST_OF_A_PASS * sum(q.share for q in noisy):
            weak.append(level)
    if not weak:
        return ""
    return f" It has less than {LEAST_OF_A_PASS} of {', '.join(weak)}, and may do harm there."


def _is_exact(plan: Plan, level: str, query: str) -> bool:
    return any(q.noise is None and (q.level, q.query) == (level, query) for q in plan.queries)
