"""Flows as pictures: who is connected with whom, and the largest flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import pyarrow.compute as pc

from trellis.evaluate.accuracy import table_errors
from trellis.evaluate.charts import bar_chart
from trellis.evaluate.html import paragraph, picture, section, table
from trellis.evaluate.public_run import PublicRun
from trellis.model.plans.kinds.flows import FlowDesign
from trellis.model.plans.percent import in_percent
from trellis.wording import html as shell
from trellis.wording import report as words

Flow = tuple[str, str, int, float]
"""Origin, destination, count, standard error; largest first."""

_SIZE = shell.FLOW_SIZE


def flows_between_areas(run: PublicRun) -> str:
    """A chord picture of the coarsest pairs, and a table of the largest flows of the finest."""
    shape = run.plan.design_as(FlowDesign).shape
    assert shape is not None
    fine = shape.leaf_pairs
    both_split = (level for level in range(fine) if min(shape.depths(level)) >= 1)
    coarse_name, fine_name = (run.plan.levels[n] for n in (next(both_split, fine), fine))
    coarse, largest = _largest(run, coarse_name), _largest(run, fine_name)
    if not coarse:
        return section(words.FLOWS, paragraph(words.NO_FLOWS))
    return section(
        words.FLOWS,
        picture(chord_picture(coarse_name, coarse), words.FLOWS_CAPTION.format(level=coarse_name)),
        paragraph(words.LARGEST_FLOWS.format(level=fine_name)),
        table(
            words.FLOW_COLUMNS,
            [
                [origin, destination, f"{count:,}", f"{error:.3g}"]
                for origin, destination, count, error in largest[: shell.MOST_FLOW_ROWS]
            ],
        ),
    )


def how_accurate_flows_are(run: PublicRun) -> str:
    """The standard errors of the flows that are listed, by level."""
    errors = list(table_errors(run))
    rows = [[e.name, f"{e.rows:,}", *(f"{x:.3g}" for x in (e.least, e.median, e.most))]
            for e in errors]  # fmt: skip
    bars = [(e.name, e.median) for e in errors]
    text = words.FLOW_ERRORS.format(
        estimate=words.FLOW_ESTIMATE[run.plan.method.looks_below],
        confidence=in_percent(run.plan.confidence),
    )
    return section(
        words.ACCURACY,
        paragraph(text),
        picture(bar_chart(words.MEDIAN_OF_FLOWS, "", bars)) if bars else "",
        paragraph(words.FLOW_ERRORS_ARE_IN),
        table(words.FLOW_ERROR_COLUMNS, rows),
    )


def _largest(run: PublicRun, level: str) -> list[Flow]:
    released = run.table(level, ["origin", "destination", "count", "std_error"])
    order = pc.sort_indices(released, [("count", "descending")])[: 3 * shell.MOST_FLOW_ROWS]  # type: ignore[attr-defined]
    rows = released.take(order)
    columns = (rows[name].to_pylist() for name in ("origin", "destination", "count", "std_error"))
    return list(zip(*columns, strict=True))


def chord_picture(title: str, flows: Sequence[Flow]) -> str:
    """Areas around a circle, sized by their trips, and a ribbon for each flow between them."""
    names, shown = _busiest(flows)
    place = _places(names, shown)
    most = max(count for _, _, count, _ in shown)
    parts = []
    for origin, destination, count, _ in reversed(shown):
        width = max(1.0, 26 * count / most)
        colour = shell.FLOW_COLOURS[names.index(origin) % len(shell.FLOW_COLOURS)]
        path = _loop(place[origin]) if origin == destination else _chord(
            place[origin], place[destination]
        )  # fmt: skip
        label = words.RIBBON.format(origin=origin, destination=destination, count=count)
        parts.append(
            shell.RIBBON.format(path=path, colour=colour, width=width, label=escape(label))
        )
    for name in names:
        x, y = _point(place[name], 268)
        anchor = "start" if x >= _SIZE / 2 else "end"
        parts.append(shell.AREA_NAME.format(x=x, y=y, anchor=anchor, name=escape(name)))
    return shell.CHORD_PICTURE.format(title=escape(title), parts="".join(parts))


def _busiest(flows: Sequence[Flow]) -> tuple[list[str], list[Flow]]:
    """The areas with the most trips, and the flows among them."""
    trips: dict[str, int] = {}
    for origin, destination, count, _ in flows:
        trips[origin] = trips.get(origin, 0) + count
        trips[destination] = trips.get(destination, 0) + count
    names = sorted(sorted(trips, key=lambda name: -trips[name])[: shell.MOST_FLOW_AREAS])
    return names, [flow for flow in flows if flow[0] in names and flow[1] in names]


def _places(names: Sequence[str], flows: Sequence[Flow]) -> dict[str, float]:
    """Angles: an area takes part of the circle by the root of its trips, and no area too little."""
    size = dict.fromkeys(names, 0.0)
    for origin, destination, count, _ in flows:
        size[origin] += count
        size[destination] += count
    size = {name: math.sqrt(value) for name, value in size.items()}
    room = sum(size.values()) or 1.0
    size = {name: value + room / len(names) for name, value in size.items()}
    whole, angle, places = sum(size.values()), 0.0, {}
    for name in names:
        step = 2 * math.pi * size[name] / whole
        places[name], angle = angle + step / 2, angle + step
    return places


def _point(angle: float, radius: float) -> tuple[float, float]:
    return _SIZE / 2 + radius * math.sin(angle), _SIZE / 2 - radius * math.cos(angle)


def _chord(start: float, end: float) -> str:
    (x, y), (u, v) = _point(start, 230), _point(end, 230)
    middle = _SIZE / 2
    return shell.CHORD.format(x=x, y=y, middle=middle, u=u, v=v)


def _loop(angle: float) -> str:
    (x, y), (u, v) = _point(angle - 0.05, 232), _point(angle + 0.05, 232)
    (a, b), (c, d) = _point(angle - 0.12, 262), _point(angle + 0.12, 262)
    return shell.LOOP.format(x=x, y=y, a=a, b=b, c=c, d=d, u=u, v=v)
