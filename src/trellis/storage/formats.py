"""The number that says in which form the JSON files of a run folder are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError

FORMAT = 3
"""Format 1 had no number; since format 3, histograms are a kind of their own.

A form that older programs would misread gets the next one.
"""


def without_format(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The content of a file of this form or an older one; a newer one is refused."""
    number = content.get("format", 1)
    if not isinstance(number, int) or number < 1:
        raise RunFolderError(f"{path} is damaged: its format is not a number.")
    if number > FORMAT:
        raise RunFolderError(
            f"{path} has format {number}, and this version of Trellis reads up to {FORMAT}. "
            "Install a newer one."
        )
    return {key: value for key, value in content.items() if key != "format"}
