"""Draws architecture.svg beside this file, from the import contracts; `make docs` runs it.

Layers are those of the first contract in pyproject.toml, and rooms where true counts live are the
forbidden ones of the second. So the picture cannot differ from what the import linter enforces.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from importlib import import_module
from pathlib import Path
from textwrap import wrap

HERE = Path(__file__).parent
WIDTH, MARGIN, LEFT, GAP = 1000, 16, 50, 10
LETTER = 6.1
"""The width of a letter of size 11, and a little more."""
PUBLIC, TRUTH, INK, LINE = "#eef3f7", "#f6d5cf", "#1d2b36", "#8fa3b2"


def contracts() -> list[dict[str, object]]:
    text = (HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["tool"]["importlinter"]["contracts"]


def layers() -> list[list[str]]:
    """Packages of each layer, the highest first."""
    found: list[str] = contracts()[0]["layers"]  # type: ignore[assignment]
    return [[name.strip().removeprefix("trellis.") for name in row.split("|")] for row in found]


def rooms_of_truth() -> list[str]:
    found: list[str] = contracts()[1]["forbidden_modules"]  # type: ignore[assignment]
    return [name.removeprefix("trellis.") for name in found]


def picture() -> str:
    body, top = [], MARGIN
    for names in layers():
        width = _room_width(names)
        lines = [wrap(_purpose(name), int((width - 16) / LETTER)) for name in names]
        height = 40 + 14 * max(map(len, lines))
        for i, name in enumerate(names):
            body.append(_room(name, lines[i], (LEFT + i * (width + GAP), top, width, height)))
        top += height + GAP
    height = top + 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" fill="{INK}">\n'
        "<title>Packages of Trellis in layers; imports point downwards</title>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f"{_arrow(top)}{''.join(body)}{_legend(top + 8)}</svg>\n"
    )


def _room_width(names: list[str]) -> float:
    return (WIDTH - MARGIN - LEFT - GAP * (len(names) - 1)) / len(names)


def _room(name: str, lines: list[str], box: tuple[float, float, float, float]) -> str:
    left, top, width, height = box
    colour = TRUTH if name in rooms_of_truth() else PUBLIC
    shape = (
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}" rx="6" '
        f'fill="{colour}" stroke="{LINE}"/>\n'
    )
    title = _text(name + "/" * (name != "errors"), left + 10, top + 22, 15, "bold")
    said = "".join(_text(line, left + 10, top + 40 + 14 * i, 11) for i, line in enumerate(lines))
    return shape + title + said + _chips(name, left + width - 8, top + 8)


def _chips(name: str, right: float, top: float) -> str:
    """Parts of a package where true counts live, if not all of it does."""
    out = []
    for part in (n.partition(".")[2] for n in rooms_of_truth() if n.startswith(f"{name}.")):
        width = LETTER * len(part) + 12
        right -= width
        out.append(
            f'<rect x="{right:.1f}" y="{top}" width="{width:.1f}" height="17" rx="4" '
            f'fill="{TRUTH}" stroke="{LINE}"/>\n' + _text(part, right + 6, top + 12.5, 11)
        )
        right -= 6
    return "".join(out)


def _purpose(name: str) -> str:
    """The docstring of a package, up to the first stop."""
    said = " ".join((import_module(f"trellis.{name}").__doc__ or "").split())
    return re.split(r"[.;:](?: |$)", said, maxsplit=1)[0]


def _arrow(bottom: float) -> str:
    x, top = MARGIN + 10, MARGIN + 4
    middle = (top + bottom) / 2
    return (
        f'<path d="M{x} {top}V{bottom - GAP}m-6 -10l6 10l6 -10" fill="none" stroke="{INK}"/>\n'
        f'<text x="{x + 16}" y="{middle}" font-size="12" text-anchor="middle" '
        f'transform="rotate(-90 {x + 16} {middle})">imports point downwards</text>\n'
    )


def _legend(top: float) -> str:
    left = LEFT
    truth = "true counts live here, and nowhere else"
    return (
        f'<rect x="{left}" y="{top}" width="16" height="16" rx="3" fill="{TRUTH}" '
        f'stroke="{LINE}"/>\n{_text(truth, left + 24, top + 13, 12)}'
        f'<rect x="{left + 300}" y="{top}" width="16" height="16" rx="3" fill="{PUBLIC}" '
        f'stroke="{LINE}"/>\n'
        + _text("rooms of one layer do not import one another", left + 324, top + 13, 12)
    )


def _text(text: str, x: float, y: float, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>\n"
    )


if __name__ == "__main__":
    (HERE / "architecture.svg").write_text(picture(), encoding="utf-8")
