"""Whether a release still stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable, load_json
from trellis.wording import withdrawal as words

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
    """If the release was withdrawn, the notice is about this very run, and says just that."""
    content = load_json(run.path, FILE)
    if content["run_id"] != run.identity["run_id"]:
        yield f"{FILE} speaks of another run"
    if set(content) != {"run_id", "withdrawn", "reason", "superseded_by", "notice"}:
        yield f"{FILE} has other keys than a notice has"
    datetime.fromisoformat(content["withdrawn"])
    if not re.fullmatch(_notice(content), content["notice"]):
        yield f"{FILE} has a notice that does not follow from its date and reason"


def _notice(content: dict[str, Any]) -> str:
    """As a pattern: only the name of the release that takes its place is not in the file."""
    reason, other, name = content["reason"], content["superseded_by"], "\0"
    said = words.NOTICE.format(
        day=content["withdrawn"][:10],
        why="" if reason is None else words.WHY.format(reason=reason.rstrip(".")),
        instead="" if other is None else words.INSTEAD.format(release=name, run_id=other),
    )
    return re.escape(said).replace(name, r"[\w .-]{1,80}", 1)
