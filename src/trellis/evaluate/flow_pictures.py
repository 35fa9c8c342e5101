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
from trellis.model.plans.flows import FlowDesign
from trellis.model.plans.percent import in_percent

Flow = tuple[str, str, int, float]
"""Origin, destination, count, standard error; largest first."""

_SIZE, _MOST_AREAS, _MOST_ROWS = 640, 16, 20
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442")


def flows_between_areas(run: PublicRun) -> str:
    """A chord picture of the coarsest pairs, and a table of the largest flows of the finest."""
    shape = run.plan.design_as(FlowDesign).shape
    assert shape is not None
    fine = shape.leaf_pairs
    both_split = (level for level in range(fine) if min(shape.depths(level)) >= 1)
    coarse_name, fine_name = (run.plan.levels[n] for n in (next(both_split, fine), fine))
    coarse = _largest(run, coarse_name)
    if not coarse:
        return section("Flows", paragraph("No flow is above zero."))
    return section(
        "Flows",
        picture(
            chord_picture(coarse_name, coarse),
            f"The largest flows of level {coarse_name}. A ribbon has the colour of the area where "
            "trips begin, and is the wider the more they are. Trips within an area are loops "
            "outside the circle.",
        ),
        paragraph(f"The largest flows of level {fine_name}:"),
        table(
            ["origin", "destination", "trips", "standard error (trips)"],
            [
                [origin, destination, f"{count:,}", f"{error:.3g}"]
                for origin, destination, count, error in _largest(run, fine_name)[:_MOST_ROWS]
            ],
        ),
    )


def how_accurate_flows_are(run: PublicRun) -> str:
    """The standard errors of the flows that are listed, by level."""
    errors = list(table_errors(run))
    rows = [[e.name, f"{e.rows:,}", *(f"{x:.3g}" for x in (e.least, e.median, e.most))]
            for e in errors]  # fmt: skip
    bars = [(e.name, e.median) for e in errors]
    title = "Standard error of a flow (trips), median of those listed"
    rests_on = (
        "the best linear unbiased estimate from all measurements above and below it"
        if run.plan.method.looks_below
        else "its own measurement"
    )
    return section(
        "How accurate it is",
        paragraph(
            f"The standard error of a flow is that of {rests_on}. The true number lies between "
            f"lower and upper with {in_percent(run.plan.confidence)} confidence, for a flow that "
            "was named before the table was seen. Of flows that were picked because they are "
            "listed, more are too high than too low. A pair without any trip can be listed."
        ),
        picture(bar_chart(title, "", bars)) if bars else "",
        paragraph("Standard errors of listed flows that are not exact, in trips; 0 is exact:"),
        table(["table", "listed pairs", "least", "median", "largest"], rows),
    )


def _largest(run: PublicRun, level: str) -> list[Flow]:
    released = run.table(level, ["origin", "destination", "count", "std_error"])
    order = pc.sort_indices(released, [("count", "descending")])[: 3 * _MOST_ROWS]  # type: ignore[attr-defined]
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
        colour = _COLOURS[names.index(origin) % len(_COLOURS)]
        path = _loop(place[origin]) if origin == destination else _chord(
            place[origin], place[destination]
        )  # fmt: skip
        label = escape(f"{origin} to {destination}: {count:,}")
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.6" '
            f'stroke-width="{width:.1f}"><title>{label}</title></path>'
        )
    for name in names:
        x, y = _point(place[name], 268)
        anchor = "start" if x >= _SIZE / 2 else "end"
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(name)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-60 -10 {_SIZE + 120} {_SIZE + 20}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="13">'
        '<rect x="-60" y="-10" width="100%" height="100%" fill="#fff"/>'
        f'<circle cx="{_SIZE / 2}" cy="{_SIZE / 2}" r="230" fill="none" stroke="#ccc"/>'
        + "".join(parts)
        + "</svg>"
    )


def _busiest(flows: Sequence[Flow]) -> tuple[list[str], list[Flow]]:
    """The areas with the most trips, and the flows among them."""
    trips: dict[str, int] = {}
    for origin, destination, count, _ in flows:
        trips[origin] = trips.get(origin, 0) + count
        trips[destination] = trips.get(destination, 0) + count
    names = sorted(sorted(trips, key=lambda name: -trips[name])[:_MOST_AREAS])
    return names, [flow for flow in flows if flow[0] in names and flow[1] in names]


def _places(names: Sequence[str], flows: Sequence[Flow]) -> dict[str, float]:
    """Angles: an area takes part of the circle by the root of its trips, and none too little."""
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
    return f"M{x:.1f},{y:.1f} Q{middle},{middle} {u:.1f},{v:.1f}"


def _loop(angle: float) -> str:
    (x, y), (u, v) = _point(angle - 0.05, 232), _point(angle + 0.05, 232)
    (a, b), (c, d) = _point(angle - 0.12, 262), _point(angle + 0.12, 262)
    return f"M{x:.1f},{y:.1f} C{a:.1f},{b:.1f} {c:.1f},{d:.1f} {u:.1f},{v:.1f}"
