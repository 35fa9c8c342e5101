"""Whether a release still stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trellis.verify.run_files import RunFiles, Unreadable

FILE = "withdrawn.json"


_MOST_BYTES = 100_000
"""Of a notice; a stranger's folder may hold anything."""


def notice(path: Path) -> str:
    """That a release was withdrawn, as its folder says; empty for others."""
    if not (path / FILE).exists():
        return ""
    try:
        return str(_content(path)["notice"])
    except (Unreadable, KeyError, TypeError):
        return f"{FILE} cannot be read."


def withdrawn(run: RunFiles) -> Iterator[str]:
    """If the release was withdrawn, the notice is about this very run."""
    if _content(run.path)["run_id"] != run.identity["run_id"]:
        yield f"{FILE} speaks of another run"


def _content(path: Path) -> dict[str, Any]:
    file = path / FILE
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _MOST_BYTES:
            raise Unreadable(f"{FILE} is not a plain, small file")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Unreadable(f"{FILE} is damaged") from None
