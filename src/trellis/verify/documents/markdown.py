"""Names and rules as a reading guide writes them: nothing in them is HTML, a link or a table."""

from __future__ import annotations

from itertools import pairwise


def plain(text: str) -> str:
    """Signs that mean something in Markdown are escaped."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in "\\`*[]|" else sign for sign in text)


def code(text: str) -> str:
    """In backquotes, unless the text has signs that do not belong there."""
    opens_tag = any(
        sign == "<" and (after in "/!?" or (after.isascii() and after.isalpha()))
        for sign, after in pairwise(text)
    )
    return plain(text) if "`" in text or "|" in text or opens_tag else f"`{text}`"
