"""Charts drawn again: where a number lies in a picture is part of what the picture says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from trellis.wording import html as shell

Bars = Sequence[tuple[str, float]]
Points = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to pixels, along one axis; on a logarithmic one, powers of ten."""

    label: str
    log: bool
    low: float
    high: float
    start: float
    end: float

    def pixel(self, value: float) -> float:
        return self.at(log10(value) if self.log else value)

    def at(self, place: float) -> float:
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    def marks(self) -> list[tuple[float, str]]:
        """About five places with their labels."""
        if self.log:
            first, last = ceil(self.low - 1e-9), floor(self.high + 1e-9)
            steps = range(first, last + 1, max(1, round((last - first) / 5)))
            return [(k, f"{10.0**k:,g}" if -2 <= k <= 5 else f"1e{k}") for k in steps]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** floor(log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [(k * step, f"{k * step:g}") for k in range(first, last + 1)]


def _range(values: list[float], *, log: bool, to_zero: bool) -> tuple[float, float]:
    places = [log10(value) for value in values] if log else values
    low, high = min(places), max(places)
    low = min(low, 0.0) if to_zero else low
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def lines(
    title: str, x: tuple[str, bool], y: tuple[str, bool], series: Sequence[tuple[str, Points]]
) -> str:
    """Named lines; `x` and `y` are labels of axes and whether these are logarithmic."""
    right, bottom = shell.WIDTH - shell.RIGHT, shell.HEIGHT - shell.BOTTOM
    xs = [value for _, points in series for value in points[0]]
    ys = [value for _, points in series for value in points[1]]
    across = Scale(*x, *_range(xs, log=x[1], to_zero=False), shell.LEFT, right)
    up = Scale(*y, *_range(ys, log=y[1], to_zero=not y[1]), bottom, shell.TOP)
    parts = _grid(across, up)
    for number, (name, points) in enumerate(series):
        drawn = " ".join(
            shell.POINT.format(x=across.pixel(a), y=up.pixel(b))
            for a, b in zip(*points, strict=True)
        )
        kind = number % len(shell.COLOURS)
        style = shell.LINE_STYLE.format(colour=shell.COLOURS[kind], dashes=shell.DASHES[kind])
        parts.append(shell.LINE.format(points=drawn, style=style))
        left, height = right - 236, shell.TOP + 16 + 18 * number
        parts.append(shell.LEGEND.format(x=left, y=height, end=left + 30, style=style))
        parts.append(_text(left + 36, height + 4, _short(name)))
    return _chart(title, parts)


def _grid(across: Scale, up: Scale) -> list[str]:
    parts = []
    for place, label in across.marks():
        x = across.at(place)
        parts.append(shell.UPRIGHT.format(x=x, top=shell.TOP, bottom=up.start))
        parts.append(_text(x, up.start + 18, label, "middle"))
    for place, label in up.marks():
        y = up.at(place)
        parts.append(shell.LEVEL_LINE.format(left=shell.LEFT, y=y, right=across.end))
        parts.append(_text(shell.LEFT - 6, y + 4, label, "end"))
    middle = (shell.LEFT + across.end) / 2
    parts.append(_text(middle, shell.HEIGHT - 12, across.label, "middle"))
    parts.append(_text(shell.LEFT - 50, shell.TOP - 10, up.label))
    return parts


def bars(title: str, unit: str, named: Bars) -> str:
    """Horizontal bars with their values."""
    most, left = max(value for _, value in named) or 1.0, 150
    step = min(40.0, (shell.HEIGHT - shell.TOP - 12) / len(named))
    parts = []
    for number, (name, value) in enumerate(named):
        top, width = shell.TOP + number * step, (shell.WIDTH - left - 90) * value / most
        middle = top + step / 2 + 4
        parts.append(_text(left - 8, middle, _short(name), "end"))
        parts.append(
            shell.BAR.format(
                x=left, y=top + step * 0.15, width=width, height=step * 0.7, colour=shell.COLOURS[0]
            )
        )
        parts.append(_text(left + width + 6, middle, f"{value:.3g}{unit}"))
    return _chart(title, parts, shell.TOP + step * len(named) + 12)


def paired_bars(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """A number before and after, and their ratio."""
    most = max((value for row in rows for value in row[1:]), default=0) or 1.0
    left, top, step = 150, 56, 40
    scale, parts = (shell.WIDTH - left - 120) / most, []

    def bar(x: float, y: float, width: float, number: int) -> str:
        colour = shell.PAIRED_COLOURS[number]
        return shell.PAIRED_BAR.format(x=x, y=y, width=width, colour=colour)

    for number, word in enumerate(shell.BEFORE_AND_AFTER):
        x = left + 160 * number
        parts += [bar(x, 28, 14, number), _text(x + 20, 38, word)]
    for place, (name, before, after) in enumerate(rows):
        y = top + place * step
        parts.append(_text(left - 8, y + 20, _short(name), "end"))
        ratio = f" ({after / before:.2f}x)" if before else ""
        for number, (value, said) in enumerate(((before, ""), (after, ratio))):
            below = y + 15 * number
            parts.append(bar(left, below, scale * value, number))
            parts.append(_text(left + scale * value + 6, below + 11, f"{value:.3g}{said}"))
    return _chart(title, parts, top + step * len(rows) + 8)


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return shell.TEXT.format(x=x, y=y, anchor=anchor, weight=weight, text=escape(text))


def _short(name: str) -> str:
    most = shell.LONGEST_NAME
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _chart(title: str, parts: Sequence[str], height: float = shell.HEIGHT) -> str:
    heading = _text(shell.WIDTH / 2, 16, title, "middle", "bold")
    return shell.CHART.format(
        width=shell.WIDTH, height=height, title=escape(title), parts=heading + "".join(parts)
    )
