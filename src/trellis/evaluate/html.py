"""Pieces of a page that opens offline, on a phone and in print. All text in it is escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import floor, log10
from typing import Any
from urllib.parse import quote

from trellis.wording import html as shell

LEAST_DECIMALS, MOST_DECIMALS = 3, 12


def resource(name: str) -> str:
    """A style sheet or script next to this file."""
    return files("trellis.evaluate").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], script: str = "", banner: str = "") -> str:
    """One self-contained document; a banner is on every printed page.

    The policy lets nothing be loaded, and no script run but ours: should a code of an area ever
    slip through the escaping, a browser would still not run it.
    """
    content = "\n".join(body)
    if banner:
        content = shell.BANNER.format(banner=escape(banner), content=content)
    return shell.PAGE.format(
        policy=shell.POLICY.format(digest=b64encode(sha256(script.encode()).digest()).decode()),
        title=escape(title),
        style=resource(shell.STYLE_FILE),
        content=content,
        script=shell.SCRIPT.format(script=script) if script else "",
    )


def section(title: str, *parts: str) -> str:
    return shell.SECTION.format(title=escape(title), parts="\n".join(parts))


def paragraph(text: str) -> str:
    return shell.PARAGRAPH.format(text=escape(text))


def bullets(sentences: Sequence[str]) -> str:
    items = "".join(shell.BULLET.format(text=escape(sentence)) for sentence in sentences)
    return shell.BULLETS.format(items=items)


def picture(svg: str, caption: str = "") -> str:
    """A drawing that keeps a readable size on a phone: it can be moved sideways there."""
    said = shell.CAPTION.format(text=escape(caption)) if caption else ""
    return shell.PICTURE.format(svg=svg, caption=said)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are text; the first column is aligned left, the others right."""
    names = "".join(shell.COLUMN.format(name=escape(name)) for name in head)
    lines = ("".join(shell.CELL.format(text=escape(cell)) for cell in row) for row in rows)
    body = "".join(shell.ROW.format(cells=line) for line in lines)
    return shell.TABLE.format(names=names, rows=body)


def number(value: float, decimals: int = LEAST_DECIMALS) -> str:
    """A number for people: whole, or with at most this many decimals."""
    return f"{float(value):,.{decimals}f}".rstrip("0").rstrip(".")


def decimals_for(width: float) -> int:
    """How many decimals numbers need so that the ends of an interval of this width differ."""
    if not 0 < width < 1:
        return LEAST_DECIMALS
    return min(MOST_DECIMALS, max(LEAST_DECIMALS, 1 - floor(log10(width))))


def link(address: str, text: str) -> str:
    """A link to a file nearby; it can never be one that runs a script."""
    return shell.LINK.format(address=escape(quote(address)), text=escape(text))


def data_block(name: str, content: Any) -> str:
    """JSON inside a page, for a script to read; no text in it can end the block."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return shell.DATA.format(name=escape(name), content=text)
