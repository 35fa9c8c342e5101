"""Line and bar charts as plain SVG text: they open anywhere, offline, and print.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; lines differ
in dashes too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from trellis.wording import html as shell

WIDTH, HEIGHT = shell.WIDTH, shell.HEIGHT
_LEFT, _RIGHT, _TOP, _BOTTOM = shell.LEFT, shell.RIGHT, shell.TOP, shell.BOTTOM


@dataclass(frozen=True, slots=True)
class Series:
    """A named line through points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Axis:
    """A label and the kind of scale."""

    label: str
    log: bool = False

    def place(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Positions on the scale and their labels, about five of them."""
        if self.log:
            first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
            step = max(1, round((last - first) / 5))
            return [(k, _power_of_ten(k)) for k in range(first, last + 1, step)]
        rough = (high - low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * f for f in (1, 2, 5, 10) if unit * f >= rough * 0.999)
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        return [(k * step, f"{k * step:g}") for k in range(first, last + 1)]


def _power_of_ten(exponent: int) -> str:
    return f"{10.0**exponent:,g}" if -2 <= exponent <= 5 else f"1e{exponent}"


def line_chart(title: str, x_axis: Axis, y_axis: Axis, series: Sequence[Series]) -> str:
    """One SVG element with axes, grid, lines and a legend."""
    xs = [x_axis.place(x) for s in series for x in s.x]
    ys = [y_axis.place(y) for s in series for y in s.y]
    x_range = _widened(min(xs), max(xs), to_zero=False)
    y_range = _widened(min(ys), max(ys), to_zero=not y_axis.log)
    frame = _Frame(x_range, y_range)
    parts = [frame.grid(x_axis, y_axis)]
    for number, s in enumerate(series):
        points = " ".join(
            shell.POINT.format(x=frame.x(x_axis.place(x)), y=frame.y(y_axis.place(y)))
            for x, y in zip(s.x, s.y, strict=True)
        )
        parts.append(shell.LINE.format(points=points, style=_style(number)))
        parts.append(_legend(number, s.name))
    return _svg(title, parts)


def bar_chart(title: str, unit: str, bars: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars with their values."""
    most = max(value for _, value in bars) or 1.0
    step = min(40.0, (HEIGHT - _TOP - 12) / len(bars))
    label_width, parts = 150, []
    for i, (name, value) in enumerate(bars):
        y = _TOP + i * step
        length = (WIDTH - label_width - 90) * value / most
        middle = y + step / 2 + 4
        parts.append(_text(label_width - 8, middle, _short(name), "end"))
        parts.append(
            shell.BAR.format(
                x=label_width,
                y=y + step * 0.15,
                width=length,
                height=step * 0.7,
                colour=shell.COLOURS[0],
            )
        )
        parts.append(_text(label_width + length + 6, middle, f"{value:.3g}{unit}"))
    return _svg(title, parts, height=_TOP + step * len(bars) + 12)


def before_after_chart(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """Pairs of horizontal bars: a number before and after, and their ratio."""
    most = max((max(before, after) for _, before, after in rows), default=0) or 1.0
    label_width, top, step = 150, 56, 40
    scale = (WIDTH - label_width - 120) / most
    parts = []
    for i, word in enumerate(shell.BEFORE_AND_AFTER):
        x = label_width + 160 * i
        parts += [_bar(x, 28, 14, i), _text(x + 20, 38, word)]
    for row, (name, *values) in enumerate(rows):
        y = top + row * step
        parts.append(_text(label_width - 8, y + 20, _short(name), "end"))
        ratio = f" ({values[1] / values[0]:.2f}x)" if values[0] else ""
        for i, (value, said) in enumerate(zip(values, ("", ratio), strict=True)):
            parts.append(_bar(label_width, y + 15 * i, scale * value, i))
            x = label_width + scale * value + 6
            parts.append(_text(x, y + 11 + 15 * i, f"{value:.3g}{said}"))
    return _svg(title, parts, height=top + step * len(rows) + 8)


def _bar(x: float, y: float, width: float, number: int) -> str:
    return shell.PAIRED_BAR.format(x=x, y=y, width=width, colour=shell.PAIRED_COLOURS[number])


@dataclass(frozen=True, slots=True)
class _Frame:
    """From positions on the scales to pixels."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    def grid(self, x_axis: Axis, y_axis: Axis) -> str:
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = []
        for value, label in x_axis.ticks(*self.x_range):
            x = self.x(value)
            parts.append(shell.UPRIGHT.format(x=x, top=_TOP, bottom=bottom))
            parts.append(_text(x, bottom + 18, label, "middle"))
        for value, label in y_axis.ticks(*self.y_range):
            y = self.y(value)
            parts.append(shell.LEVEL_LINE.format(left=_LEFT, y=y, right=right))
            parts.append(_text(_LEFT - 6, y + 4, label, "end"))
        parts.append(_text((_LEFT + right) / 2, HEIGHT - 12, x_axis.label, "middle"))
        parts.append(_text(_LEFT - 50, _TOP - 10, y_axis.label))
        return "".join(parts)


def _widened(low: float, high: float, *, to_zero: bool) -> tuple[float, float]:
    if to_zero:
        low = min(low, 0.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _style(number: int) -> str:
    kind = number % len(shell.COLOURS)
    return shell.LINE_STYLE.format(colour=shell.COLOURS[kind], dashes=shell.DASHES[kind])


def _legend(number: int, name: str) -> str:
    y = _TOP + 16 + 18 * number
    x = WIDTH - _RIGHT - 236
    line = shell.LEGEND.format(x=x, y=y, end=x + 30, style=_style(number))
    return line + _text(x + 36, y + 4, _short(name))


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return shell.TEXT.format(x=x, y=y, anchor=anchor, weight=weight, text=escape(text))


def _short(name: str) -> str:
    longest = shell.LONGEST_NAME
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _svg(title: str, parts: Sequence[str], height: float = HEIGHT) -> str:
    drawn = _text(WIDTH / 2, 16, title, "middle", "bold") + "".join(parts)
    return shell.CHART.format(width=WIDTH, height=height, title=escape(title), parts=drawn)
