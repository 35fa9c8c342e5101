"""Paths of a spec that is written into another folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_PATHS = ("source", "path", "sql")
"""Keys whose text is a path, or the address of a database."""


def is_same_place(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def moved(content: Any, old: Path, new: Path | None) -> Any:
    """Content whose relative paths lead from a new folder to the old places.

    Without a new folder, paths become absolute.
    """
    if isinstance(content, list):
        return [moved(item, old, new) for item in content]
    if not isinstance(content, dict):
        return content
    return {
        key: _moved_path(value, old, new)
        if key in _PATHS and isinstance(value, str)
        else moved(value, old, new)
        for key, value in content.items()
    }


def _moved_path(text: str, old: Path, new: Path | None) -> str:
    scheme, colon, rest = text.partition(":")
    if colon and scheme != "sqlite" and "/" not in scheme and rest.startswith("//"):
        return text  # an address, not a path
    prefix, path = ("sqlite:", rest) if scheme == "sqlite" and colon else ("", text)
    place = os.path.realpath(old / path)
    if new is None:
        return prefix + place
    if Path(path).is_absolute():
        return text
    return prefix + os.path.relpath(place, os.path.realpath(new))
