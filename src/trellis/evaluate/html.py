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

LEAST_DECIMALS, MOST_DECIMALS = 3, 12


def resource(name: str) -> str:
    """A style sheet or script that lies beside this file."""
    return files("trellis.evaluate").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], script: str = "", banner: str = "") -> str:
    """One self-contained document; a banner stands on every printed page.

    The policy lets nothing be loaded, and no script run but ours: should a code of an area ever
    slip through the escaping, a browser would still not carry it out.
    """
    content = "\n".join(body)
    if banner:
        content = (
            f'<div class="marked"><div class="mark"><p class="banner">{escape(banner)}</p></div>'
            f'<div class="content">{content}</div></div>'
        )
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{allowed}'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{resource('page.css')}</style></head><body>\n"
        + content
        + (f"\n<script>{script}</script>" if script else "")
        + "\n</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n" + "\n".join(parts) + "</section>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def bullets(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def picture(svg: str, caption: str = "") -> str:
    """A drawing that keeps a readable size on a phone: it can be moved sideways there."""
    said = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="wide">{svg}</div>{said}</figure>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are text; the first column stands to the left, the others to the right."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    head_row = f"<thead><tr>{names}</tr></thead>"
    return f'<div class="wide"><table>{head_row}<tbody>{body}</tbody></table></div>'


def number(value: float, decimals: int = LEAST_DECIMALS) -> str:
    """A number for people: whole, or with at most so many decimals."""
    return f"{float(value):,.{decimals}f}".rstrip("0").rstrip(".")


def decimals_for(width: float) -> int:
    """How many decimals numbers need so that the ends of an interval of this width differ."""
    if not 0 < width < 1:
        return LEAST_DECIMALS
    return min(MOST_DECIMALS, max(LEAST_DECIMALS, 1 - floor(log10(width))))


def link(address: str, text: str) -> str:
    """A link to a file nearby; it can never be one that runs a script."""
    return f'<a href="{escape(quote(address))}">{escape(text)}</a>'


def data_block(name: str, content: Any) -> str:
    """JSON inside a page, for a script to read; no text in it can end the block."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'
