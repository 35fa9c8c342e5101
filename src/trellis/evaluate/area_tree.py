"""The tree of areas in a page: compact data, and a script that makes rows when they are opened."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.evaluate.html import data_block, link, number, paragraph, resource, section, table
from trellis.evaluate.measures import Measure, measures
from trellis.evaluate.public_run import PublicRun
from trellis.model.plans.percent import in_percent
from trellis.model.trees.hierarchy import Hierarchy
from trellis.wording import html as shell
from trellis.wording import report as words

SCRIPT = resource(shell.SCRIPT_FILE)


def area_tree(run: PublicRun, most_bytes: int = words.MOST_TREE_BYTES) -> str:
    """The levels that fit, root first; the tables of the others are linked."""
    blocks, shown, names = [], [], []
    room = most_bytes
    for level, name in enumerate(_levels(run)):
        if run.plan.areas[level] * words.FEWEST_AREA_BYTES > room or _n_numbers(run, name) > room:
            break
        found = measures(run, name)
        names += [measure.name for measure in found if measure.name not in names]
        made = _level_blocks(run.hierarchy, level, found, names)
        size = sum(len(block.encode()) for block in made)
        if size > room:
            break
        room -= size
        blocks += made
        shown.append(name)
    if not shown:
        return ""
    content = {"levels": shown, "measures": names}
    return section(
        words.AREAS,
        paragraph(_how_to_use(run, names)),
        shell.CONTROLS.format(interval=f"{_percent(run)}interval"),
        shell.NO_SCRIPT.format(table=_plain(run)),
        _others(run, run.plan.levels[len(shown) :]),
        data_block("tree-data", content),
        *blocks,
    )


def _levels(run: PublicRun) -> tuple[str, ...]:
    """The levels down to the last one that has a table."""
    with_table = [i for i, level in enumerate(run.plan.levels) if run.tables(level)]
    return run.plan.levels[: max(with_table, default=-1) + 1]


def _how_to_use(run: PublicRun, names: list[str]) -> str:
    plan = run.plan
    interval = words.WITH_INTERVAL if plan.method.has_variances else words.WITHOUT_INTERVAL
    interval = interval.format(confidence=in_percent(plan.confidence))
    text = words.OPEN_AN_AREA.format(unit=plan.design.counted_in, interval=interval)
    if plan.design.by_query:
        text += words.SMALLEST_TABLE
    if words.ALL_CELLS in names:
        text += words.SUMS_HAVE_NO_INTERVAL
    if len(names) > words.MOST_CELLS:
        text += words.FIRST_CELLS.format(most=words.MOST_CELLS)
    return text


def _n_numbers(run: PublicRun, level: str) -> int:
    """The least that is read to show a level."""
    return min((run.n_rows(name) for name in run.tables(level)), default=0)


def _level_blocks(
    hierarchy: Hierarchy, level: int, found: list[Measure], names: list[str]
) -> list[str]:
    blocks = [data_block(f"level-{level}", _shape(hierarchy, level))]
    for measure in found:
        position = names.index(measure.name)
        blocks.append(data_block(f"values-{level}-{position}", _values(measure)))
    return blocks


def _shape(hierarchy: Hierarchy, level: int) -> dict[str, Any]:
    """Codes of the published areas and how many of them each area above has.

    Codes that all begin with the code above are kept without it. Pass-through nodes of a ragged
    tree are left out; a node with published areas below is published itself.
    """
    shown = ~hierarchy.passes_through[level]
    codes = hierarchy.codes(level)[shown].tolist()
    if level == 0:
        return {"codes": codes}
    parents = hierarchy.parents(level)[shown]
    above = ~hierarchy.passes_through[level - 1]
    children = np.bincount(parents, minlength=above.size)[above]
    prefixes = hierarchy.codes(level - 1)[parents].tolist()
    pairs = list(zip(codes, prefixes, strict=True))
    shortened = all(code.startswith(prefix) for code, prefix in pairs)
    if shortened:
        codes = [code[len(prefix) :] for code, prefix in pairs]
    return {"codes": codes, "children": children.tolist(), "shortened": shortened}


def _values(measure: Measure) -> dict[str, Any]:
    """The numbers, how far below and above them their intervals reach, and which are exact."""
    digits = measure.decimals
    content: dict[str, Any] = {"value": _listed(measure.value, digits)}
    if not np.issubdtype(measure.value.dtype, np.integer):
        content["digits"] = digits
    if measure.lower is not None and measure.upper is not None:
        content["below"] = _listed(measure.value - measure.lower, digits)
        content["above"] = _listed(measure.upper - measure.value, digits)
    if measure.exact is not None and measure.exact.any():
        content["exact"] = np.flatnonzero(measure.exact).tolist()
    return content


def _listed(numbers: NDArray, digits: int) -> list[Any]:
    """Plain numbers for JSON; what is not known is null, and real numbers are kept short."""
    if np.issubdtype(numbers.dtype, np.integer):
        return numbers.tolist()
    short = [round(x, digits) if np.isfinite(x) else None for x in numbers.tolist()]
    return [int(x) if x is not None and x == int(x) else x for x in short]


def _plain(run: PublicRun) -> str:
    """The first two levels as a plain table, for readers without scripts."""
    rows, name = [], ""
    for level, areas in enumerate(run.plan.areas[:2]):
        found = measures(run, run.plan.levels[level])
        if found and areas <= words.MOST_PLAIN_ROWS:
            name = name or found[0].name
            rows += [_row(run, level, i, found[0]) for i in range(areas)]
    columns = [c.format(measure=name, confidence=_percent(run)) for c in words.PLAIN_COLUMNS]
    return table(columns, rows)


def _percent(run: PublicRun) -> str:
    """The words before an interval, where there are intervals."""
    return f"{in_percent(run.plan.confidence)} " if run.plan.method.has_variances else ""


def _row(run: PublicRun, level: int, index: int, measure: Measure) -> list[str]:
    codes = run.hierarchy.codes(level)[~run.hierarchy.passes_through[level]]
    ends = (measure.value, measure.lower, measure.upper)
    numbers = [
        "" if e is None or not np.isfinite(e[index]) else number(e[index], measure.decimals)
        for e in ends
    ]
    return [str(codes[index]), *numbers]


def _others(run: PublicRun, levels: tuple[str, ...]) -> str:
    """Links to the tables of the levels that are too large for the page."""
    if not levels:
        return ""
    linked = [
        link(place, place.removeprefix("../release/"))
        for level in levels
        for name in run.tables(level)
        for place in run.links(name)
    ]
    return shell.TOO_LARGE.format(links=", ".join(linked))
