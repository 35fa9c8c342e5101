"""The sections of a report that every kind of release has."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from html import escape
from importlib.metadata import version

from trellis.evaluate.accuracy import margins_by_size, statistic_margins, table_errors
from trellis.evaluate.charts import bar_chart
from trellis.evaluate.html import (
    bullets,
    decimals_for,
    link,
    number,
    paragraph,
    picture,
    section,
    table,
)
from trellis.evaluate.measures import measures
from trellis.evaluate.privacy_pictures import privacy_curve, tradeoff_curve
from trellis.evaluate.public_run import PublicRun
from trellis.model.plans.percent import in_percent
from trellis.model.plans.statement import (
    attacks_in_words,
    guarantee_in_words,
    stated_delta,
    unprotected_in_words,
)
from trellis.privacy.guarantee import round_up
from trellis.privacy.neighbours import Neighbours


def what_is_released(run: PublicRun) -> str:
    plan = run.plan
    what, counted = plan.design.title, plan.design.counted_at_most
    cells = "" if plan.schema.n_cells == 1 else f", {plan.schema.n_cells:,} cells for each area"
    together = " and put together so that they add up" if plan.method.adds_up else ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{areas:,}</td><td>{_files(run, name)}</td></tr>"
        for name, areas in zip(plan.levels, plan.areas, strict=True)
    )
    head = f"<tr><th>level</th><th>{counted}</th><th>table</th></tr>"
    return section(
        "What was released",
        paragraph(
            f"{what} for {len(plan.levels)} levels{cells}, made private with noise{together}. "
            "Noise was added once. It is independent of errors that the data had before."
        ),
        f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>',
        f"<p>{link('../release/README.md', 'How to read the tables')}.</p>",
    )


def _files(run: PublicRun, level: str) -> str:
    several = len(run.tables(level)) > 1
    linked = []
    for name in run.tables(level):
        of = f"{name.partition('/')[2]} " if several else ""
        linked += [link(place, of + place.rpartition(".")[2].upper()) for place in run.links(name)]
    return " ".join(linked)


def what_is_protected(run: PublicRun) -> str:
    """The guarantee in plain words, assumptions included."""
    unprotected = unprotected_in_words(run.plan)
    words = [sentence for sentence in guarantee_in_words(run.plan) if sentence not in unprotected]
    return section("What is protected", paragraph(_in_plain_words(run)), bullets(words))


def _in_plain_words(run: PublicRun) -> str:
    unit, is_restricted = run.plan.protection.unit, bool(run.plan.protection.restrictions)
    otherwise = (
        f"a {unit} more or less in the data"
        if run.plan.protection.neighbours is Neighbours.ADD_REMOVE
        else f"another record of any one {unit}"
    )
    return (
        f"In plain words: with {otherwise}, this release would have looked much the same. What can "
        f"be learned from it about any single {unit} is limited, whoever looks, whatever else they "
        f"know, now and later.{' This has restrictions, stated below.' * is_restricted}"
    )


def what_is_not_protected(run: PublicRun) -> str:
    return section("What is not protected", bullets(unprotected_in_words(run.plan)))


def what_an_attacker_can_learn(run: PublicRun) -> str:
    return section(
        "What an attacker can learn",
        paragraph("Someone who knows every record but one looks for evidence about that one."),
        bullets(attacks_in_words(run.plan)),
        picture(
            tradeoff_curve(run.plan.privacy.accountant),
            "The closer the line lies to guessing, the less any attack can achieve.",
        ),
    )


def how_private_it_is(run: PublicRun) -> str:
    return section(
        "How private it is",
        picture(
            privacy_curve(run.plan.privacy.accountant),
            "The release keeps every pair of epsilon and delta on the line; smaller is better.",
        ),
    )


def where_the_budget_went(run: PublicRun) -> str:
    plan = run.plan
    shares = dict.fromkeys(plan.levels if plan.spine is None else (), Fraction(0))
    for query in plan.queries:
        of = "" if query.share_class is None else f" ({plan.n_nodes(query):,})"  # nodes of a spine
        shares[query.level + of] = shares.get(query.level + of, Fraction(0)) + query.share
    bars = [(level, 100 * float(share)) for level, share in shares.items()]
    rows = [
        [
            query.level,
            query.query,
            str(query.share),
            "none: exact" if query.noise is None else f"{query.variance**0.5:.3g}",
        ]
        for query in plan.queries
    ]
    return section(
        "Where the budget went",
        picture(bar_chart("Share of the budget", " %", bars)),
        table(["level", "query", "share", f"sd of the noise ({plan.design.counted_in})"], rows),
    )


def how_accurate_it_is(run: PublicRun) -> str:
    if run.plan.forecast.errors is None:
        return section(
            "How accurate it is",
            paragraph("The method of this release has no margins of error."),
        )
    unit, errors, by_size = (
        run.plan.design.counted_in,
        list(table_errors(run)),
        margins_by_size(run),
    )
    rows = [[e.name, f"{e.rows:,}", *map(_three, (e.least, e.median, e.most))] for e in errors]
    bars = [(e.name, e.median) for e in errors]
    return section(
        "How accurate it is",
        paragraph(
            "A standard error belongs to the best linear unbiased estimate of a count, made from "
            "all measurements. It is known from the noise, and from what is exact, alone."
        ),
        picture(bar_chart(f"Median standard error of a count ({unit})", "", bars)),
        paragraph(f"Standard errors of all counts that are not exact, in {unit}; 0 is exact:"),
        table(["table", "counts", "least", "median", "largest"], rows),
        _statistics(run),
        picture(by_size, "Beside a small count, its margin is large.") if by_size else "",
    )


def _statistics(run: PublicRun) -> str:
    """How wide the intervals of statistics of group sizes are."""
    if not run.has_statistics:
        return ""
    rows = [
        [level, statistic, number(width, decimals_for(width))]
        for level in run.plan.levels
        for statistic, width in statistic_margins(run, level)
    ]
    said = "Half of an interval of a statistic, median over areas, with"
    return paragraph(f"{said} {in_percent(run.plan.confidence)} confidence:") + table(
        ["level", "statistic", "half interval"], rows
    )


def _three(value: float) -> str:
    return f"{value:.3g}"


def how_to_read_a_margin(run: PublicRun) -> str:
    """An example: the first interval with two ends, or else the first number with noise."""
    if run.plan.forecast.errors is None:
        return ""
    narrow = ""
    for level, name in enumerate(run.plan.levels):
        areas = run.hierarchy.codes(level)[~run.hierarchy.passes_through[level]]
        for measure in measures(run, name):
            if (i := measure.example) is None:
                continue
            ends = measure.at(i)
            example = margin_section(run, name, str(areas[i]), measure.name, ends)
            if ends["lower"] < ends["upper"]:
                return example
            narrow = narrow or example
    return narrow or _margin_section(run, "Numbers of this release are exact.")


def margin_section(
    run: PublicRun, level: str, area: str, cell: str, ends: Mapping[str, float]
) -> str:
    """How to read one count with its interval: `count`, `lower` and `upper` of `ends`."""
    decimals = decimals_for(ends["upper"] - ends["lower"])
    value, lower, upper = (number(ends[key], decimals) for key in ("count", "lower", "upper"))
    return _margin_section(
        run,
        f"For example, {level} {area} ({cell}): published {value}, interval {lower} to {upper}. "
        f"With {in_percent(run.plan.confidence)} confidence the true number lies in it.",
    )


def _margin_section(run: PublicRun, example: str) -> str:
    share = 100 * float(run.plan.confidence)
    return section(
        "How to read a margin of error",
        paragraph(example),
        bullets(
            [
                f"Of 100 such intervals about {share:g} contain the true count. Some miss it.",
                "The published count need not lie in the middle: it is made to add up.",
                "Two areas whose intervals overlap may be equally large.",
                "Do not add up ends of intervals; take the interval of the area that holds them.",
                "The margin speaks of the noise that protects people, and of no other error.",
            ]
        ),
    )


def how_to_cite(run: PublicRun) -> str:
    plan, delta = run.plan, stated_delta(run.plan)
    epsilon = round_up(plan.privacy.epsilon(float(delta)))
    restricted = ", with the restrictions in privacy.json" if plan.protection.restrictions else ""
    text = (
        f"{plan.release} ({run.date}). Differentially private release, run {run.run_id}; unit of "
        f"protection: {plan.protection.unit}; ({epsilon}, {delta})-differential privacy"
        f"{restricted}. Made with Trellis {version('trellis-dp')}."
    )
    return section(
        "How to cite",
        paragraph("Put the publisher's name and the place of publication around this:"),
        f'<p class="cite">{escape(text)}</p>',
        paragraph("State the interval with every number that you quote.")
        if plan.method.has_variances
        else "",
    )
