"""Pieces of a page, and numbers as a page shows them. All text is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from math import floor, log10
from typing import Any
from urllib.parse import quote

from trellis.wording import html as shell


def section(title: str, *parts: str) -> str:
    return shell.SECTION.format(title=escape(title), parts="\n".join(parts))


def paragraph(text: str) -> str:
    return shell.PARAGRAPH.format(text=escape(text))


def bullets(sentences: Iterable[str]) -> str:
    items = [shell.BULLET.format(text=escape(sentence)) for sentence in sentences]
    return shell.BULLETS.format(items="".join(items))


def picture(svg: str, caption: str = "") -> str:
    below = shell.CAPTION.format(text=escape(caption)) if caption else ""
    return shell.PICTURE.format(svg=svg, caption=below)


def row(cells: Iterable[str]) -> str:
    """Of cells that hold HTML."""
    return shell.ROW.format(cells="".join(shell.CELL.format(text=cell) for cell in cells))


def table(names: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(shell.COLUMN.format(name=escape(name)) for name in names)
    return shell.TABLE.format(names=head, rows="".join(row(map(escape, r)) for r in rows))


def link(address: str, text: str) -> str:
    return shell.LINK.format(address=escape(quote(address)), text=escape(text))


def data(name: str, content: Any) -> str:
    """A block of JSON that no text in it can end."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, "\\u" + format(ord(sign), "04x"))
    return shell.DATA.format(name=name, content=text)


def three_digits(value: float) -> str:
    return f"{value:.3g}"


def decimals(width: float) -> int:
    """How many tell the ends of an interval apart: three, or up to twelve for narrow ones."""
    return min(12, max(3, 1 - floor(log10(width)))) if 0 < width < 1 else 3


def shown(value: float, digits: int) -> str:
    """With thousands apart, and without zeros at the end."""
    text = f"{float(value):,.{digits}f}"
    return text.rstrip("0").rstrip(".")
