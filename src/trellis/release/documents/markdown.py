"""Names and rules of a spec as Markdown; what would be HTML or a link there is shown as text."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[A-Za-z/!?]")
_SIGNS = re.compile(r"([\\`*\[\]|])")


def plain(text: str) -> str:
    """Text that no reader of Markdown takes for anything else."""
    return _SIGNS.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def code(text: str) -> str:
    """A code span, or plain text where a span would end early or show a tag."""
    return plain(text) if "`" in text or "|" in text or _TAG.search(text) else f"`{text}`"
