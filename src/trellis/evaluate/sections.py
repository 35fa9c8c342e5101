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
from trellis.wording import html as shell
from trellis.wording import report as words


def what_is_released(run: PublicRun) -> str:
    plan = run.plan
    n_cells, together = plan.schema.n_cells, words.TOGETHER if plan.method.adds_up else ""
    levels = zip(plan.levels, plan.areas, strict=True)
    cells = ((escape(name), f"{areas:,}", _files(run, name)) for name, areas in levels)
    rows = "".join(
        shell.ROW.format(cells="".join(shell.CELL.format(text=text) for text in row))
        for row in cells
    )
    text = words.RELEASED_TEXT.format(
        what=plan.design.title,
        levels=len(plan.levels),
        cells="" if n_cells == 1 else words.CELLS.format(cells=n_cells),
        together=together,
    )
    counted = plan.design.counted_at_most
    return section(
        words.RELEASED,
        paragraph(text),
        shell.LEVELS.format(level=words.LEVEL, counted=counted, table=words.TABLE, rows=rows),
        shell.GUIDE_LINK.format(link=link("../release/README.md", words.HOW_TO_READ)),
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
    said = [sentence for sentence in guarantee_in_words(run.plan) if sentence not in unprotected]
    return section(words.PROTECTED, paragraph(_in_plain_words(run)), bullets(said))


def _in_plain_words(run: PublicRun) -> str:
    protection = run.plan.protection
    return words.IN_PLAIN_WORDS.format(
        otherwise=words.OTHERWISE[protection.neighbours].format(unit=protection.unit),
        unit=protection.unit,
        restricted=words.RESTRICTED if protection.restrictions else "",
    )


def what_is_not_protected(run: PublicRun) -> str:
    return section(words.NOT_PROTECTED, bullets(unprotected_in_words(run.plan)))


def what_an_attacker_can_learn(run: PublicRun) -> str:
    return section(
        words.ATTACKER,
        paragraph(words.ATTACKER_TEXT),
        bullets(attacks_in_words(run.plan)),
        picture(tradeoff_curve(run.plan.privacy.accountant), words.TRADE_OFF_CAPTION),
    )


def how_private_it_is(run: PublicRun) -> str:
    return section(
        words.HOW_PRIVATE,
        picture(privacy_curve(run.plan.privacy.accountant), words.PRIVACY_CURVE_CAPTION),
    )


def where_the_budget_went(run: PublicRun) -> str:
    plan = run.plan
    shares = dict.fromkeys(plan.levels if plan.spine is None else (), Fraction(0))
    for query in plan.queries:
        name = query.level
        if query.share_class is not None:
            name = words.SHARE_CLASS.format(level=name, nodes=plan.n_nodes(query))
        shares[name] = shares.get(name, Fraction(0)) + query.share
    bars = [(level, 100 * float(share)) for level, share in shares.items()]
    rows = [
        [
            query.level,
            query.query,
            str(query.share),
            words.NO_NOISE if query.noise is None else f"{query.variance**0.5:.3g}",
        ]
        for query in plan.queries
    ]
    return section(
        words.BUDGET,
        picture(bar_chart(words.SHARES, " %", bars)),
        table([name.format(unit=plan.design.counted_in) for name in words.BUDGET_COLUMNS], rows),
    )


def how_accurate_it_is(run: PublicRun) -> str:
    if run.plan.forecast.errors is None:
        return section(words.ACCURACY, paragraph(words.NO_MARGINS))
    unit, errors, by_size = (
        run.plan.design.counted_in,
        list(table_errors(run)),
        margins_by_size(run),
    )
    rows = [[e.name, f"{e.rows:,}", *map(_three, (e.least, e.median, e.most))] for e in errors]
    bars = [(e.name, e.median) for e in errors]
    return section(
        words.ACCURACY,
        paragraph(words.ABOUT_ERRORS),
        picture(bar_chart(words.MEDIAN_ERROR.format(unit=unit), "", bars)),
        paragraph(words.ERRORS_ARE_IN.format(unit=unit)),
        table(words.ERROR_COLUMNS, rows),
        _statistics(run),
        picture(by_size, words.BY_SIZE_CAPTION) if by_size else "",
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
    said = words.STATISTICS.format(confidence=in_percent(run.plan.confidence))
    return paragraph(said) + table(words.STATISTIC_COLUMNS, rows)


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
    return narrow or _margin_section(run, words.ALL_EXACT)


def margin_section(
    run: PublicRun, level: str, area: str, cell: str, ends: Mapping[str, float]
) -> str:
    """How to read one count with its interval: `count`, `lower` and `upper` of `ends`."""
    decimals = decimals_for(ends["upper"] - ends["lower"])
    value, lower, upper = (number(ends[key], decimals) for key in ("count", "lower", "upper"))
    example = words.MARGIN_EXAMPLE.format(
        level=level,
        area=area,
        cell=cell,
        value=value,
        lower=lower,
        upper=upper,
        confidence=in_percent(run.plan.confidence),
    )
    return _margin_section(run, example)


def _margin_section(run: PublicRun, example: str) -> str:
    share = 100 * float(run.plan.confidence)
    return section(
        words.MARGIN,
        paragraph(example),
        bullets([rule.format(share=share) for rule in words.MARGIN_RULES]),
    )


def how_to_cite(run: PublicRun) -> str:
    plan, delta = run.plan, stated_delta(run.plan)
    epsilon = round_up(plan.privacy.epsilon(float(delta)))
    text = words.CITATION.format(
        release=plan.release,
        date=run.date,
        run_id=run.run_id,
        unit=plan.protection.unit,
        epsilon=epsilon,
        delta=delta,
        restricted=words.CITE_RESTRICTED if plan.protection.restrictions else "",
        version=version("trellis-dp"),
    )
    return section(
        words.CITE,
        paragraph(words.CITE_TEXT),
        shell.CITATION.format(text=escape(text)),
        paragraph(words.STATE_INTERVALS) if plan.method.has_variances else "",
    )
