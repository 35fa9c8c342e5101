"""Whether a release still stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from trellis.verify.run_files import RunFiles, Unreadable

FILE = "withdrawn.json"


def notice(path: Path) -> str:
    """That a release was withdrawn, as its folder says; empty for others."""
    try:
        said = json.loads((path / FILE).read_text(encoding="utf-8"))["notice"]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):
        return f"{FILE} cannot be read."
    return str(said)


def withdrawn(run: RunFiles) -> Iterator[str]:
    """If the release was withdrawn, the notice is about this very run."""
    try:
        content = json.loads((run.path / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Unreadable(f"{FILE} is missing or damaged") from None
    if content["run_id"] != run.identity["run_id"]:
        yield f"{FILE} speaks of another run"
