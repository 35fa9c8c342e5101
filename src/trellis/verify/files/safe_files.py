"""Reads files of a folder that a stranger made: no links, no devices, and a bound on every size."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import yaml

from trellis.errors import RunFolderError

FORMAT = 3
"""Of plan.json, run.json and privacy.json; files of the first format have no number."""

MOST_JSON_BYTES = 16_000_000
MOST_YAML_BYTES = 4_000_000
MOST_YAML_NODES = 200_000
MOST_DEPTH = 50
"""Of nested lists and mappings in YAML, and of folders in folders."""

MOST_FILES = 1_000_000

_EXACT = re.compile(r"[-+]?\d{1,2000}(/\d{1,2000}|\.\d{0,2000})?([eE][-+]?\d{1,3})?")
_EXACT_KEYS = {"rho", "epsilon", "epsilon_pure", "delta", "share", "parameter", "confidence",
               "penalty", "weights"}  # fmt: skip
"""Keys whose text becomes a fraction; `1e999999999` would fill the memory."""


class Unreadable(Exception):
    """A file is missing or damaged; the text says which."""


def walk(folder: Path, place: str = "") -> Iterator[tuple[str, int]]:
    """Names and sizes of all files; links and whatever is not a plain file are refused."""
    if place.count("/") > MOST_DEPTH:
        raise RunFolderError(f"{folder} has folders in folders, deeper than a run folder can have.")
    try:
        entries = sorted(os.scandir(folder / place), key=lambda entry: entry.name)
    except OSError as error:
        raise RunFolderError(f"{folder / place} could not be read ({error.strerror}).") from None
    if len(entries) > MOST_FILES:
        raise RunFolderError(f"{folder / place} has more files than a run folder can have.")
    for entry in entries:
        name, status = f"{place}{entry.name}", entry.stat(follow_symlinks=False)
        if S_ISDIR(status.st_mode):
            yield from walk(folder, f"{name}/")
        elif S_ISREG(status.st_mode):
            yield name, status.st_size
        else:
            what = "a link" if entry.is_symlink() else "not a plain file"
            raise RunFolderError(
                f"{folder / name} is {what}, which no run folder holds. Nothing of it was read: "
                "do not trust this folder, or put the file itself in its place."
            )


def empty_folders(folder: Path) -> Iterator[str]:
    """Folders without a file, whose names could say anything."""
    for place, folders, files in os.walk(folder):
        if not folders and not files:
            yield Path(place).relative_to(folder).as_posix()


def digest(path: Path, so_far: Any = None) -> str:
    """SHA-256 of a file, piece by piece."""
    found = sha256() if so_far is None else so_far
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def load_json(folder: Path, name: str) -> Any:
    """What a JSON file of bounded size holds; a mapping has no key twice."""
    try:
        return json.loads(read_text(folder, name, MOST_JSON_BYTES), object_pairs_hook=_mapping)
    except (OSError, ValueError, RecursionError):
        raise Unreadable(f"{name} is missing or damaged") from None


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A mapping in a JSON file, whose exact numbers are of bounded size."""
    content = load_json(folder, name)
    if not isinstance(content, dict) or type(number := content.get("format", 1)) is not int:
        raise Unreadable(f"{name} is damaged")
    if number < 1:
        raise Unreadable(f"{name} has a format that there never was")
    if number > FORMAT:
        raise RunFolderError(
            f"{folder / name} has format {number}, and this version of Trellis reads up to "
            f"{FORMAT}. Install a newer one."
        )
    for key, text in _exact_numbers(content):
        if not _EXACT.fullmatch(text):
            raise Unreadable(f"{name} has no exact number in {key}")
    return content


def _exact_numbers(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Text that becomes a fraction, with its key; names of attributes are no keys."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name not in ("schema", "recodes"):
                yield from _exact_numbers(value, name)
    elif isinstance(content, list):
        for value in content:
            yield from _exact_numbers(value, key)
    elif isinstance(content, str) and key in _EXACT_KEYS:
        yield key, content


def read_yaml(folder: Path, name: str) -> dict[str, Any]:
    """A mapping in a YAML file of bounded size and depth, without anchors and aliases."""
    try:
        content = yaml.load(read_text(folder, name, MOST_YAML_BYTES), _PlainLoader)  # noqa: S506
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        raise Unreadable(f"{name} is missing or damaged") from None
    if not isinstance(content, dict):
        raise Unreadable(f"{name} is damaged")
    return content


def read_text(folder: Path, name: str, most: int) -> str:
    """A plain file of bounded size."""
    path = folder / name
    if not S_ISREG(path.lstat().st_mode):
        raise Unreadable(f"{name} is not a plain file")
    if path.stat().st_size > most:
        raise Unreadable(f"{name} is larger than {most:,} bytes, which no run writes")
    return path.read_text(encoding="utf-8")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


class _PlainLoader(yaml.SafeLoader):
    """Refuses what lets a short text grow without end."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable("spec.yaml has anchors or aliases, which no run writes")
        self._nodes += 1
        self._depth += 1
        if self._nodes > MOST_YAML_NODES or self._depth > MOST_DEPTH:
            raise Unreadable("spec.yaml has more or deeper entries than a run writes")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
