"""One self-contained page about a release: it opens offline, on a phone and in print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from trellis.evaluate.charts import bar_chart
from trellis.evaluate.privacy_pictures import privacy_curve, tradeoff_curve
from trellis.model.plan import Plan
from trellis.model.size_mechanisms import GROUP_SIZES
from trellis.model.statement import attacks_in_words, guarantee_in_words

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 46rem; margin: 0 auto;
       padding: 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2rem; border-top: 1px solid #ccc; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2rem .5rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr { border-bottom: 1px solid #ddd; }
.wide { overflow-x: auto; } svg { width: 100%; height: auto; margin: .5rem 0; }
@media print { body { max-width: none; } h2 { break-after: avoid; } svg { break-inside: avoid; } }
"""


def report_page(plan: Plan) -> str:
    """HTML from the plan alone: nothing in it depends on the records."""
    accountant = plan.privacy.accountant
    measured = [q for q in plan.queries if q.noise is not None]
    levels = [level for level in plan.levels if any(q.level == level for q in measured)]
    shares = [(name, 100 * float(sum(q.share for q in measured if q.level == name)))
              for name in levels]  # fmt: skip
    body = [
        f"<h1>{escape(plan.release)}</h1>",
        _paragraph(_subject(plan)),
        "<h2>What is protected</h2>",
        _list(guarantee_in_words(plan)),
        "<h2>What an attacker can learn</h2>",
        _paragraph("Someone who knows every record but one looks for evidence about that one."),
        _list(attacks_in_words(plan)),
        tradeoff_curve(accountant),
        "<h2>How private it is</h2>",
        privacy_curve(accountant),
        "<h2>Where the budget went</h2>",
        bar_chart("Share of the budget", " %", shares),
        _levels(plan),
    ]
    if plan.expected_errors is not None:
        errors = [(e.level, e.median) for e in plan.expected_errors]
        body += [
            "<h2>How accurate it is</h2>",
            _paragraph(
                "A standard error belongs to the best linear unbiased estimate of a count, made "
                "from all measurements. The true count lies between lower and upper with "
                f"confidence {plan.confidence}."
            ),
            bar_chart("Median standard error of a count", "", errors),
        ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(plan.release)}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _subject(plan: Plan) -> str:
    what = "Groups by size" if plan.kind == GROUP_SIZES else "Counts"
    together = " and put together so that they add up" if plan.adds_up else ""
    return (
        f"{what} for {len(plan.levels)} levels, from {plan.areas[0]} to {plan.areas[-1]:,} areas, "
        f"made private with noise{together}. The tables and how to read them are in the folder "
        "release."
    )


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def _levels(plan: Plan) -> str:
    rows = []
    for query in plan.queries:
        size = plan.areas[plan.levels.index(query.level)]
        noise = "exact" if query.noise is None else f"{query.variance**0.5:.3g}"
        cells = [query.level, query.query, f"{size:,}", str(query.share), noise]
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("level", "query", "areas", "share", "noise sd"))
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
