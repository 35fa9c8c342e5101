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
WIDTH, MARGIN, GAP, BAND = 1000, 16, 10, 112
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
    rows = layers()
    height = MARGIN + len(rows) * (BAND + GAP) + 46
    body = "".join(_band(rows[i], MARGIN + i * (BAND + GAP)) for i in range(len(rows)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" fill="{INK}">\n'
        "<title>Packages of Trellis in layers; imports point downwards</title>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f"{_arrow(height)}{body}{_legend(height - 30)}</svg>\n"
    )


def _band(names: list[str], top: int) -> str:
    left, right = MARGIN + 34, WIDTH - MARGIN
    width = (right - left - GAP * (len(names) - 1)) / len(names)
    return "".join(_room(n, left + i * (width + GAP), top, width) for i, n in enumerate(names))


def _room(name: str, left: float, top: int, width: float) -> str:
    colour = TRUTH if name in rooms_of_truth() else PUBLIC
    box = (
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{BAND}" rx="6" '
        f'fill="{colour}" stroke="{LINE}"/>\n'
    )
    title = _text(name + "/" * (name != "errors"), left + 10, top + 22, 15, "bold")
    lines = wrap(_purpose(name), int((width - 16) / 6.1))
    said = "".join(_text(line, left + 10, top + 40 + 14 * i, 11) for i, line in enumerate(lines))
    return box + title + said + _chips(name, left + 10, top + BAND - 8)


def _chips(name: str, left: float, bottom: int) -> str:
    """Parts of a package where true counts live, if not all of it does."""
    inside = [n.partition(".")[2] for n in rooms_of_truth() if n.startswith(f"{name}.")]
    out = []
    for part in inside:
        width = 7 * len(part) + 12
        out.append(
            f'<rect x="{left:.1f}" y="{bottom - 14}" width="{width}" height="17" rx="4" '
            f'fill="{TRUTH}" stroke="{LINE}"/>\n' + _text(part, left + 6, bottom - 1, 11)
        )
        left += width + 6
    return "".join(out)


def _purpose(name: str) -> str:
    """The docstring of a package, up to the first stop."""
    said = " ".join((import_module(f"trellis.{name}").__doc__ or "").split())
    return re.split(r"[.;:](?: |$)", said, maxsplit=1)[0]


def _arrow(height: int) -> str:
    x, top, bottom = MARGIN + 10, MARGIN + 4, height - 56
    middle = (top + bottom) / 2
    return (
        f'<path d="M{x} {top}V{bottom}m-6 -10l6 10l6 -10" fill="none" stroke="{INK}"/>\n'
        f'<text x="{x + 16}" y="{middle}" font-size="12" text-anchor="middle" '
        f'transform="rotate(-90 {x + 16} {middle})">imports point downwards</text>\n'
    )


def _legend(top: int) -> str:
    left = MARGIN + 34
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
