"""The sections on margins of error, and on areas of interest."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from trellis.verify.documents.methods import confidence
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.report import charts
from trellis.verify.report.elements import (
    bullets,
    decimals,
    link,
    paragraph,
    picture,
    section,
    shown,
    table,
    three_digits,
)  # fmt: skip
from trellis.verify.report.tables import (
    MARGINS,
    Spread,
    files_of,
    measures,
    read,
    spreads,
    statistics,
    tables_of,
)  # fmt: skip
from trellis.wording import html as shell
from trellis.wording import report as words
from trellis.wording.kinds import KINDS

_FEWEST = 5
"""A point of the picture of margins stands for at least so many counts."""


def accuracy(run: RunFiles) -> str:
    if run.plan["expected_standard_errors"] is None:
        return section(words.ACCURACY, paragraph(words.NO_MARGINS))
    unit, found = KINDS[run.plan["kind"]]["counted_in"], spreads(run)
    by_size = _margins_by_size(run)
    medians = [(spread.name, spread.median) for spread in found]
    return section(
        words.ACCURACY,
        paragraph(words.ABOUT_ERRORS),
        picture(charts.bars(words.MEDIAN_ERROR.format(unit=unit), "", medians)),
        paragraph(words.ERRORS_ARE_IN.format(unit=unit)),
        table(words.ERROR_COLUMNS, map(spread_row, found)),
        _statistics(run) if run.has_sizes else "",
        picture(by_size, words.BY_SIZE_CAPTION) if by_size else "",
    )


def spread_row(spread: Spread) -> list[str]:
    numbers = map(three_digits, (spread.least, spread.median, spread.most))
    return [spread.name, f"{spread.rows:,}", *numbers]


def _statistics(run: RunFiles) -> str:
    rows = []
    for level in run.plan["levels"]:
        for measure in statistics(run, level["level"]):
            if measure.example is not None and measure.ends is not None:
                width = measure.ends[1] - measure.ends[0]
                if np.isnan(width).all():
                    raise Unreadable(f"level {level['level']} has statistics without intervals")
                half = float(np.nanmedian(width)) / 2
                rows.append([level["level"], measure.name, shown(half, decimals(half))])
    text = words.STATISTICS.format(confidence=confidence(run.plan))
    return paragraph(text) + table(words.STATISTIC_COLUMNS, rows)


def _margins_by_size(run: RunFiles) -> str:
    """Median margins in percent of the count, for classes of half a power of ten."""
    series = []
    for level in run.plan["levels"]:
        found = read(run, tables_of(run, level["level"])[0], MARGINS)
        if found["lower"].null_count:
            continue
        count, lower, upper, error = (found[column].to_numpy() for column in MARGINS)
        used = (error > 0) & (count >= 1)
        points = _points(count[used].astype(np.float64), ((upper - lower) / 2)[used])
        if len(points) > 1:
            series.append((level["level"], tuple(zip(*points, strict=True))))
    if not series:
        return ""
    x = words.BY_SIZE_X.format(unit=KINDS[run.plan["kind"]]["counted_in"])
    y = words.BY_SIZE_Y.format(confidence=confidence(run.plan))
    return charts.lines(words.BY_SIZE, (x, True), (y, True), series)


def _points(count: np.ndarray, margin: np.ndarray) -> list[tuple[float, float]]:
    points, size = [], np.floor(2 * np.log10(count))
    for number in np.unique(size):
        inside = size == number
        percent = float(np.median(100 * margin[inside] / count[inside]))
        if np.count_nonzero(inside) >= _FEWEST and percent > 0:
            points.append((float(np.median(count[inside])), percent))
    return points


def margin(run: RunFiles) -> str:
    """An example: the first interval with two ends, or else the first number with noise."""
    if run.plan["expected_standard_errors"] is None:
        return ""
    narrow = ""
    for level, tree in zip(run.plan["levels"], run.levels, strict=True):
        for measure in measures(run, level):
            if (i := measure.example) is None or measure.ends is None:
                continue
            area = tree.geocodes[int(tree.shown[i])].as_py()
            count, lower, upper = (float(x[i]) for x in (measure.value, *measure.ends))
            ends = {"count": count, "lower": lower, "upper": upper}
            example = margin_section(run, level["level"], area, measure.name, ends)
            if lower < upper:
                return example
            narrow = narrow or example
    return narrow or _margin_section(run, words.ALL_EXACT)


def margin_section(
    run: RunFiles, level: str, area: str, cell: str, ends: Mapping[str, float]
) -> str:
    digits = decimals(ends["upper"] - ends["lower"])
    example = words.MARGIN_EXAMPLE.format(
        level=level,
        area=area,
        cell=cell,
        value=shown(ends["count"], digits),
        lower=shown(ends["lower"], digits),
        upper=shown(ends["upper"], digits),
        confidence=confidence(run.plan),
    )
    return _margin_section(run, example)


def _margin_section(run: RunFiles, example: str) -> str:
    share = 100 * float(Fraction(run.plan["confidence"]))
    rules = [rule.format(share=share) for rule in words.MARGIN_RULES]
    return section(words.MARGIN, paragraph(example), bullets(rules))


def interests(run: RunFiles) -> str:
    """Tables of areas, and what the spine does."""
    plan = run.plan
    if "effects" not in plan:
        return ""
    parts = []
    for area in plan.get("areas", []):
        files = [link(f, f.split("/")[-1]) for f in files_of(run, f"areas/{area['name']}")]
        text = words.INTEREST.format(number=area["entities"])
        parts.append(shell.INTEREST.format(links=" ".join(files), text=text))
    if "spine" in plan:
        steps = "; ".join(plan["spine"]["steps"]).capitalize()
        parts.append(paragraph(words.SPINE.format(steps=steps)))
        parts.append(picture(charts.paired_bars(words.EFFECTS, _effects(run))))
    return section(words.INTERESTS, *parts)


def _effects(run: RunFiles) -> list[tuple[str, float, float]]:
    """Areas first, then levels."""
    return [
        (
            words.EFFECT_OF_LEVEL.format(level=e["name"]) if e["is_level"] else e["name"],
            e["error_before"],
            e["error_after"],
        )
        for is_level in (False, True)
        for e in run.plan["effects"]
        if e["is_level"] == is_level
    ]
