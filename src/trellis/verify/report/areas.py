"""The tree of areas in the report, with the numbers that its script shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.verify.documents.methods import confidence
from trellis.verify.files.run_files import RunFiles
from trellis.verify.report.elements import data, link, paragraph, section, shown, table
from trellis.verify.report.tables import Measure, files_of, measures, tables_of
from trellis.wording import html as shell
from trellis.wording import report as words
from trellis.wording.kinds import KINDS


def areas(run: RunFiles) -> str:
    """The levels that fit, root first; files of the others are linked."""
    levels, (n_shown, names, made) = run.plan["levels"], _data_blocks(run)
    if not n_shown:
        return ""
    content = {"levels": [level["level"] for level in levels[:n_shown]], "measures": names}
    return section(
        words.AREAS,
        paragraph(_text(run, names)),
        shell.CONTROLS.format(interval=f"{_percent(run)}interval"),
        shell.NO_SCRIPT.format(table=_plain(run)),
        _others(run, [level["level"] for level in levels[n_shown:]]),
        data("tree-data", content),
        *made,
    )


def _data_blocks(run: RunFiles) -> tuple[int, list[str], list[str]]:
    """How many levels fit, what is shown of them, and the blocks of data."""
    levels, room = run.plan["levels"], words.MOST_TREE_BYTES
    last = max((i for i, x in enumerate(levels) if tables_of(run, x["level"])), default=-1)
    names: list[str] = []
    made: list[str] = []
    for number, level in enumerate(levels[: last + 1]):
        found = _measures_that_fit(run, level, room)
        if found is None:
            return number, names, made
        names += [measure.name for measure in found if measure.name not in names]
        blocks = [data(f"level-{number}", _shape(run, number))]
        blocks += [data(f"values-{number}-{names.index(m.name)}", _values(m)) for m in found]
        room -= sum(len(block.encode()) for block in blocks)
        if room < 0:
            return number, names, made
        made += blocks
    return last + 1, names, made


def _measures_that_fit(run: RunFiles, level: dict[str, Any], room: int) -> list[Measure] | None:
    """None for a level with more areas, or more rows, than there can be room for."""
    tables = tables_of(run, level["level"])
    n_rows = run.n_rows(f"release/{tables[0]}.parquet") if tables else 0
    if level["areas"] * words.FEWEST_AREA_BYTES > room or n_rows > room:
        return None
    return measures(run, level)


def _shape(run: RunFiles, number: int) -> dict[str, Any]:
    """Codes of the published areas, and how many of them each published area above has."""
    level = run.levels[number]
    codes = _codes(run, number)
    if number == 0:
        return {"codes": codes}
    above, parent = run.levels[number - 1], level.parent[level.shown]
    children = np.bincount(parent, minlength=len(above))[above.shown]
    prefixes = np.array(above.codes, dtype=object)[parent].tolist()
    pairs = list(zip(codes, prefixes, strict=True))
    shortened = all(code.startswith(prefix) for code, prefix in pairs)
    if shortened:
        codes = [code[len(prefix) :] for code, prefix in pairs]
    return {"codes": codes, "children": children.tolist(), "shortened": shortened}


def _codes(run: RunFiles, number: int) -> list[str]:
    level = run.levels[number]
    return np.array(level.codes, dtype=object)[level.shown].tolist()


def _values(measure: Measure) -> dict[str, Any]:
    """The numbers, how far their intervals reach below and above, and which are exact."""
    content: dict[str, Any] = {"value": _listed(measure.value, measure.digits)}
    if measure.value.dtype.kind not in "iu":
        content["digits"] = measure.digits
    if measure.ends is not None:
        lower, upper = measure.ends
        content["below"] = _listed(measure.value - lower, measure.digits)
        content["above"] = _listed(upper - measure.value, measure.digits)
    if measure.exact is not None and measure.exact.any():
        content["exact"] = np.flatnonzero(measure.exact).tolist()
    return content


def _listed(numbers: np.ndarray, digits: int) -> list[Any]:
    """Whole numbers as such; real ones rounded; null for what is not known."""
    if numbers.dtype.kind in "iu":
        return numbers.tolist()
    found: list[Any] = []
    for value in numbers.tolist():
        rounded = round(value, digits) if np.isfinite(value) else None
        is_whole = rounded is not None and rounded == int(rounded)
        found.append(int(rounded) if is_whole and rounded is not None else rounded)
    return found


def _text(run: RunFiles, names: list[str]) -> str:
    interval = words.WITH_INTERVAL if run.has_centres else words.WITHOUT_INTERVAL
    unit = KINDS[run.plan["kind"]]["counted_in"]
    said = interval.format(confidence=confidence(run.plan))
    text = words.OPEN_AN_AREA.format(unit=unit, interval=said)
    text += words.SMALLEST_TABLE if run.plan["kind"] == "histograms" else ""
    text += words.SUMS_HAVE_NO_INTERVAL if words.ALL_CELLS in names else ""
    most = words.MOST_CELLS
    return text + (words.FIRST_CELLS.format(most=most) if len(names) > most else "")


def _percent(run: RunFiles) -> str:
    return f"{confidence(run.plan)} " if run.has_centres else ""


def _plain(run: RunFiles) -> str:
    """The first two levels, for readers without scripts."""
    rows, name = [], ""
    for number, level in enumerate(run.plan["levels"][:2]):
        if level["areas"] > words.MOST_PLAIN_ROWS or not (found := measures(run, level)):
            continue
        name = name or found[0].name
        rows += [
            [code, *(_cell(numbers, i, found[0].digits) for numbers in _ends(found[0]))]
            for i, code in enumerate(_codes(run, number))
        ]
    columns = [c.format(measure=name, confidence=_percent(run)) for c in words.PLAIN_COLUMNS]
    return table(columns, rows)


def _ends(measure: Measure) -> list[np.ndarray | None]:
    return [measure.value, measure.lower, measure.upper]


def _cell(numbers: np.ndarray | None, place: int, digits: int) -> str:
    known = numbers is not None and np.isfinite(numbers[place])
    return shown(numbers[place], digits) if known and numbers is not None else ""


def _others(run: RunFiles, levels: list[str]) -> str:
    if not levels:
        return ""
    files = [f for level in levels for name in tables_of(run, level) for f in files_of(run, name)]
    links = [link(file, file.removeprefix("../release/")) for file in files]
    return shell.TOO_LARGE.format(links=", ".join(links))
