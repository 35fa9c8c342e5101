"""The sections of a report that only a release of flows has."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from math import cos, pi, sin, sqrt

import numpy as np

from trellis.verify.documents.methods import confidence
from trellis.verify.files.run_files import RunFiles
from trellis.verify.report import charts
from trellis.verify.report.accuracy import spread_row
from trellis.verify.report.elements import paragraph, picture, section, table, three_digits
from trellis.verify.report.tables import read, spreads
from trellis.wording import html as shell
from trellis.wording import report as words

Flow = tuple[str, str, int, float]
"""Origin, destination, count, standard error."""


def flows(run: RunFiles) -> str:
    """A picture of the coarsest pairs, and a table of the largest flows of the finest."""
    coarse, fine = _levels(run)
    drawn, largest = _largest(run, coarse), _largest(run, fine)
    if not drawn:
        return section(words.FLOWS, paragraph(words.NO_FLOWS))
    rows = [
        [origin, destination, f"{count:,}", three_digits(error)]
        for origin, destination, count, error in largest[: shell.MOST_FLOW_ROWS]
    ]
    return section(
        words.FLOWS,
        picture(_chords(coarse, drawn), words.FLOWS_CAPTION.format(level=coarse)),
        paragraph(words.LARGEST_FLOWS.format(level=fine)),
        table(words.FLOW_COLUMNS, rows),
    )


def _levels(run: RunFiles) -> tuple[str, str]:
    """The first level below both roots, and that of all pairs of leaves."""
    flow, names = run.plan["flow"], [level["level"] for level in run.plan["levels"]]
    left = [len(flow["origin_levels"]) - 1, len(flow["destination_levels"]) - 1]
    fine = sum(left)
    # The sides are split in turns, so both are split from the second level on, if both can be.
    coarse = 2 if min(left) >= 1 else fine
    return names[min(coarse, fine)], names[fine]


def _largest(run: RunFiles, level: str) -> list[Flow]:
    found = read(run, level, ["origin", "destination", "count", "std_error"])
    order = np.argsort(-found["count"].to_numpy(), kind="stable")[: 3 * shell.MOST_FLOW_ROWS]
    rows = found.take(order).to_pydict()
    return list(zip(*rows.values(), strict=True))


def accuracy(run: RunFiles) -> str:
    found = spreads(run)
    text = words.FLOW_ERRORS.format(
        estimate=words.FLOW_ESTIMATE[run.plan["method"].startswith("gls_")],
        confidence=confidence(run.plan),
    )
    medians = [(spread.name, spread.median) for spread in found]
    return section(
        words.ACCURACY,
        paragraph(text),
        picture(charts.bars(words.MEDIAN_OF_FLOWS, "", medians)) if medians else "",
        paragraph(words.FLOW_ERRORS_ARE_IN),
        table(words.FLOW_ERROR_COLUMNS, map(spread_row, found)),
    )


# -- chords ---------------------------------------------------------------------------------------


def _chords(title: str, found: list[Flow]) -> str:
    """The busiest areas around a circle, and a ribbon for each flow among them."""
    trips: dict[str, int] = defaultdict(int)
    for origin, destination, count, _ in found:
        trips[origin] += count
        trips[destination] += count
    busiest = sorted(trips, key=lambda name: -trips[name])[: shell.MOST_FLOW_AREAS]
    names = sorted(busiest)
    among = [flow for flow in found if flow[0] in names and flow[1] in names]
    angle, most = _angles(names, among), max(flow[2] for flow in among)
    parts = []
    for origin, destination, count, _ in reversed(among):
        ends = angle[origin], angle[destination]
        label = words.RIBBON.format(origin=origin, destination=destination, count=count)
        parts.append(
            shell.RIBBON.format(
                path=_loop(ends[0]) if origin == destination else _chord(*ends),
                colour=shell.FLOW_COLOURS[names.index(origin) % len(shell.FLOW_COLOURS)],
                width=max(1.0, 26 * count / most),
                label=escape(label),
            )
        )
    for name in names:
        x, y = _point(angle[name], 268)
        anchor = "start" if x >= shell.FLOW_SIZE / 2 else "end"
        parts.append(shell.AREA_NAME.format(x=x, y=y, anchor=anchor, name=escape(name)))
    return shell.CHORD_PICTURE.format(title=escape(title), parts="".join(parts))


def _angles(names: list[str], among: list[Flow]) -> dict[str, float]:
    """The middle of each area's part of the circle: by the root of its trips, and a least part."""
    trips = dict.fromkeys(names, 0.0)
    for origin, destination, count, _ in among:
        trips[origin] += count
        trips[destination] += count
    roots = {name: sqrt(value) for name, value in trips.items()}
    least = (sum(roots.values()) or 1.0) / len(names)
    parts = {name: root + least for name, root in roots.items()}
    whole, angle, middles = sum(parts.values()), 0.0, {}
    for name in names:
        step = 2 * pi * parts[name] / whole
        middles[name] = angle + step / 2
        angle += step
    return middles


def _point(angle: float, radius: float) -> tuple[float, float]:
    middle = shell.FLOW_SIZE / 2
    return middle + radius * sin(angle), middle - radius * cos(angle)


def _chord(start: float, end: float) -> str:
    (x, y), (u, v) = _point(start, 230), _point(end, 230)
    return shell.CHORD.format(x=x, y=y, middle=shell.FLOW_SIZE / 2, u=u, v=v)


def _loop(angle: float) -> str:
    (x, y), (u, v) = _point(angle - 0.05, 232), _point(angle + 0.05, 232)
    (a, b), (c, d) = _point(angle - 0.12, 262), _point(angle + 0.12, 262)
    return shell.LOOP.format(x=x, y=y, a=a, b=b, c=c, d=d, u=u, v=v)
