"""The sections on what was released, what is protected and where the budget went."""

from __future__ import annotations

from fractions import Fraction
from html import escape

from trellis.verify.documents.figures import ALPHAS, DELTAS, Figures
from trellis.verify.documents.statement import attacks, guarantee, restrictions, unprotected
from trellis.verify.files.run_files import RunFiles
from trellis.verify.report import charts
from trellis.verify.report.elements import (
    bullets,
    link,
    paragraph,
    picture,
    row,
    section,
    table,
    three_digits,
)  # fmt: skip
from trellis.verify.report.tables import files_of, n_cells_of, tables_of
from trellis.wording import html as shell
from trellis.wording import report as words
from trellis.wording.kinds import KINDS


def released(run: RunFiles) -> str:
    plan, n_cells = run.plan, n_cells_of(run.plan)
    text = words.RELEASED_TEXT.format(
        what=KINDS[plan["kind"]]["title"],
        levels=len(plan["levels"]),
        cells=words.CELLS.format(cells=n_cells) if n_cells > 1 else "",
        together=words.TOGETHER if run.adds_up else "",
    )
    rows = [
        row([escape(level["level"]), f"{level['areas']:,}", _links(run, level["level"])])
        for level in plan["levels"]
    ]
    counted = KINDS[plan["kind"]]["counted_at_most"]
    levels = shell.LEVELS.format(
        level=words.LEVEL, counted=counted, table=words.TABLE, rows="".join(rows)
    )
    guide = shell.GUIDE_LINK.format(link=link("../release/README.md", words.HOW_TO_READ))
    return section(words.RELEASED, paragraph(text), levels, guide)


def _links(run: RunFiles, level: str) -> str:
    tables, links = tables_of(run, level), []
    for name in tables:
        query = f"{name.split('/')[1]} " if len(tables) > 1 else ""
        links += [link(file, query + file.split(".")[-1].upper()) for file in files_of(run, name)]
    return " ".join(links)


def protected(run: RunFiles) -> str:
    unit = run.plan["protection"]["unit"]
    text = words.IN_PLAIN_WORDS.format(
        otherwise=words.OTHERWISE[run.plan["protection"]["neighbours"]].format(unit=unit),
        unit=unit,
        restricted=words.RESTRICTED if restrictions(run.plan) else "",
    )
    public = unprotected(run.plan)
    said = [s for s in guarantee(run.plan, Figures(run)) if s not in public]
    return section(words.PROTECTED, paragraph(text), bullets(said))


def not_protected(run: RunFiles) -> str:
    return section(words.NOT_PROTECTED, bullets(unprotected(run.plan)))


def attacker(run: RunFiles) -> str:
    figures = Figures(run)
    missed = figures.curve.tradeoff_curve(ALPHAS)[0]
    best = (words.BEST_ATTACK, (ALPHAS.tolist(), missed.tolist()))
    guessing = (words.GUESSING, ([0.0, 1.0], [1.0, 0.0]))
    axes = (words.FALSE_ALARMS, False), (words.MISSED, False)
    return section(
        words.ATTACKER,
        paragraph(words.ATTACKER_TEXT),
        bullets(attacks(run.plan, figures)),
        picture(charts.lines(words.TRADE_OFF, *axes, [best, guessing]), words.TRADE_OFF_CAPTION),
    )


def how_private(run: RunFiles) -> str:
    curve = Figures(run).curve
    exact = curve.epsilon_curve(DELTAS)[1].tolist()
    bound = [curve.epsilon_zcdp(delta) for delta in DELTAS.tolist()]
    drawn = [(words.EXACT_CURVE, exact), (words.ZCDP_CURVE, bound)]
    series = [(name, (DELTAS.tolist(), values)) for name, values in drawn]
    axes = (words.DELTA, True), (words.EPSILON, False)
    svg = charts.lines(words.PRIVACY_CURVE, *axes, series)
    return section(words.HOW_PRIVATE, picture(svg, words.PRIVACY_CURVE_CAPTION))


def budget(run: RunFiles) -> str:
    plan = run.plan
    levels = [level["level"] for level in plan["levels"]] if "spine" not in plan else []
    shares = dict.fromkeys(levels, Fraction(0))
    for q in plan["queries"]:
        name = _name(run, q)
        shares[name] = shares.get(name, Fraction(0)) + Fraction(q["share"])
    rows = [[q["level"], q["query"], q["share"], _noise(q)] for q in plan["queries"]]
    columns = [name.format(unit=KINDS[plan["kind"]]["counted_in"]) for name in words.BUDGET_COLUMNS]
    parts = [(name, 100 * float(share)) for name, share in shares.items()]
    return section(
        words.BUDGET, picture(charts.bars(words.SHARES, " %", parts)), table(columns, rows)
    )


def _name(run: RunFiles, query: dict) -> str:
    """The level; on a spine, with the number of nodes that have this share."""
    if "class" not in query:
        return query["level"]
    levels = {level["level"]: level["classes"] for level in run.plan["spine"]["levels"]}
    nodes = levels[query["level"]][query["class"]]["nodes"]
    return words.SHARE_CLASS.format(level=query["level"], nodes=nodes)


def _noise(query: dict) -> str:
    noise = query["noise"]
    return words.NO_NOISE if noise is None else three_digits(noise["variance"] ** 0.5)


def cite(run: RunFiles, day: str, version: str) -> str:
    figures = Figures(run)
    text = words.CITATION.format(
        release=run.plan["release"],
        date=day,
        run_id=run.identity["run_id"],
        unit=run.plan["protection"]["unit"],
        epsilon=figures.epsilon,
        delta=figures.delta,
        restricted=words.CITE_RESTRICTED if restrictions(run.plan) else "",
        version=version,
    )
    return section(
        words.CITE,
        paragraph(words.CITE_TEXT),
        shell.CITATION.format(text=escape(text)),
        paragraph(words.STATE_INTERVALS) if run.has_centres else "",
    )
