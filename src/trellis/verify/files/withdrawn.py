"""Whether a release still stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable, load_json

FILE = "withdrawn.json"


def notice(path: Path) -> str:
    """That a release was withdrawn, as its folder says; empty for others."""
    if not (path / FILE).exists():
        return ""
    try:
        return str(load_json(path, FILE)["notice"])
    except (Unreadable, KeyError, TypeError):
        return f"{FILE} cannot be read."


def withdrawn(run: RunFiles) -> Iterator[str]:
    """If the release was withdrawn, the notice is about this very run."""
    if load_json(run.path, FILE)["run_id"] != run.identity["run_id"]:
        yield f"{FILE} speaks of another run"
