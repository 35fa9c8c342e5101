"""An evaluation as files: JSON, a table and a page with pictures, all marked confidential."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.confidential.metrics import COUNTS, TOTALS, GroupErrors, LevelErrors
from trellis.evaluate.charts import Axis, Series, bar_chart, line_chart
from trellis.evaluate.html import number, page, paragraph, picture, section, table
from trellis.model.plans.percent import in_percent
from trellis.storage.atomic import reporting_os_errors, write_json, write_text
from trellis.storage.spreadsheets import safe_text

STEM = "CONFIDENTIAL-evaluation"
BANNER = "CONFIDENTIAL: made from the records. Do not publish, and do not put into a run folder."


@dataclass(frozen=True, slots=True)
class Units:
    """What the numbers of an evaluation are in."""

    counts: str
    rows: str
    confidence: Fraction

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "level", self.rows, "mean |error|", "rms", "max |error|", "bias", "false +", "false -",
            f"{in_percent(self.confidence)} covered",
        )  # fmt: skip


def write_evaluation(
    out: Path, content: dict[str, Any], levels: Sequence[LevelErrors], units: Units
) -> None:
    """Files that only their owner may read."""
    with reporting_os_errors(out):
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = [out / f"{STEM}{ending}" for ending in (".json", ".csv", ".html")]
        write_json(files[0], content, private=True)
        write_text(files[1], _csv(levels), private=True)
        page = evaluation_page(content["release"], levels, units)
        write_text(files[2], page, private=True)


def level_row(level: LevelErrors) -> list[str]:
    """One line for people; the names are in `Units.columns`."""
    e, n_zeros = level.errors, level.true_zeros
    return [
        level.level if level.what == COUNTS else f"{level.level}, {level.what}",
        f"{level.areas:,}",
        number(e.mean_absolute_error),
        number(e.root_mean_squared_error),
        number(e.largest_error),
        number(e.bias),
        _percent(_false_positive_rate(level)),
        _percent(level.false_negatives / (e.counts - n_zeros) if e.counts > n_zeros else None),
        _percent(e.coverage),
    ]


def _false_positive_rate(level: LevelErrors) -> float | None:
    """The share of true zeros; for flows, which have little else, of the pairs that are listed."""
    if level.false_discovery_rate is not None:
        return level.false_discovery_rate
    return level.false_positives / level.true_zeros if level.true_zeros else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _csv(levels: Sequence[LevelErrors]) -> str:
    """One row for each level, size class and group; the first column says it is confidential."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["confidential", "level", "compared", "group", "least", "most", "counts",
         "mean_absolute_error", "root_mean_squared_error", "bias", "largest_error",
         "coverage", "interval_width"]
    )  # fmt: skip
    for level in levels:
        sizes = [("", size.least, size.most, size.errors) for size in level.by_size]
        groups = [(_in_words(g), "", "", g.errors) for g in level.by_group]
        for group, least, most, e in [("", "", "", level.errors), *sizes, *groups]:
            writer.writerow(
                ["yes", *map(safe_text, (level.level, level.what, group)), least, most, e.counts,
                 e.mean_absolute_error, e.root_mean_squared_error, e.bias, e.largest_error,
                 e.coverage, e.interval_width]
            )  # fmt: skip
    return text.getvalue()


def _in_words(group: GroupErrors) -> str:
    return ", ".join(f"{name} = {category}" for name, category in group.group.items())


def evaluation_page(release: str, levels: Sequence[LevelErrors], units: Units) -> str:
    compared = _by_what(levels)
    covered = _coverage_pictures(compared)
    tables_in = f"Counts and errors in {units.counts}, {in_percent(units.confidence)} intervals:"
    body = [
        f"<h1>Confidential evaluation</h1>{paragraph(f'Release: {release}')}",
        section(
            "Errors by level",
            table(units.columns, map(level_row, levels)),
            paragraph(
                f"Errors are in {units.counts}. Covered: intervals that contain the true count. "
                "False +: true zeros that are published as more; for flows, the share of listed "
                "pairs that have no trip. False -: counts above zero that are published as zero."
            ),
            *(
                picture(_bars(f"Root mean squared error ({units.counts}){of}", "", _rms(some)))
                for of, some in compared.items()
            ),
        ),
        section(
            "Errors by true size",
            *(
                drawn
                for of, some in compared.items()
                for drawn in _by_size_pictures(of, some, units.counts)
            ),
            paragraph(tables_in),
            *map(_size_table, levels),
        ),
    ]
    if any(level.by_group for level in levels):
        body.append(
            section("Errors by cell or category", paragraph(tables_in), *map(_group_table, levels))
        )
    if covered:
        share = 100 * float(units.confidence)
        wanted = f"Of 100 intervals, {share:g} should contain the true count."
        body.insert(1, section("Coverage", paragraph(wanted), *covered))
    return page(f"CONFIDENTIAL: {release}", body, banner=BANNER)


def _bars(title: str, unit: str, bars: Sequence[tuple[str, float]]) -> str:
    return bar_chart(f"CONFIDENTIAL: {title}", unit, bars)


def _by_what(levels: Sequence[LevelErrors]) -> dict[str, list[LevelErrors]]:
    """What the pictures show: levels by query of a histogram, in words that follow a title."""
    found: dict[str, list[LevelErrors]] = {}
    for level in levels:
        if level.what != TOTALS:
            of = "" if level.what == COUNTS else f", {level.what}"
            found.setdefault(of, []).append(level)
    return found


def _coverage_pictures(compared: Mapping[str, Sequence[LevelErrors]]) -> list[str]:
    drawn = []
    for of, levels in compared.items():
        bars = [(x.level, 100 * x.errors.coverage) for x in levels if x.errors.coverage is not None]
        if bars:
            drawn.append(picture(_bars(f"Intervals that contain the true count{of}", " %", bars)))
    return drawn


def _rms(levels: Sequence[LevelErrors]) -> list[tuple[str, float]]:
    return [(level.level, level.errors.root_mean_squared_error) for level in levels]


def _by_size_pictures(of: str, levels: Sequence[LevelErrors], unit: str) -> list[str]:
    """Lines over the true size; zero has no place on a logarithmic axis and is in the tables."""
    drawn = []
    for title, name in (("Mean absolute error", "mean_absolute_error"), ("Bias", "bias")):
        lines = []
        for level in levels:
            sizes = [size for size in level.by_size if size.least > 0]
            x = [float(size.least * size.most) ** 0.5 for size in sizes]
            if len(sizes) > 1:
                lines.append(Series(level.level, x, [getattr(s.errors, name) for s in sizes]))
        if lines:
            axes = Axis(f"true count ({unit})", log=True), Axis(f"{title.lower()} ({unit})")
            shown = f"CONFIDENTIAL: {title} by true size{of}"
            drawn.append(picture(line_chart(shown, *axes, lines)))
    return drawn


def _size_table(level: LevelErrors) -> str:
    head = [f"{level.level}, {level.what}", "counts", "mean abs. error", "bias", "coverage"]
    rows = [
        [
            number(size.least) if size.least == size.most else f"{size.least:,} to {size.most:,}",
            f"{size.errors.counts:,}",
            number(size.errors.mean_absolute_error),
            number(size.errors.bias),
            _percent(size.errors.coverage),
        ]
        for size in level.by_size
    ]
    return table(head, rows)


def _group_table(level: LevelErrors) -> str:
    """Of one table of a histogram; nothing of a total."""
    if not level.by_group:
        return ""
    head = [f"{level.level}, {level.what}", "true count", "counts", "mean abs. error", "bias",
            "largest error", "coverage"]  # fmt: skip
    rows = [
        [
            ", ".join(group.group.values()),
            f"{group.true_total:,}",
            f"{group.errors.counts:,}",
            number(group.errors.mean_absolute_error),
            number(group.errors.bias),
            number(group.errors.largest_error),
            _percent(group.errors.coverage),
        ]
        for group in level.by_group
    ]
    return table(head, rows)
