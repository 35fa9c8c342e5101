"""Hierarchies as tau-Argus keeps them: one code a line, one more sign in front for each level down.

    North
    @N1
    @N2
    @@N21
    South

The total above all codes is not in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trellis.errors import InputError, SourceError


def paths_from_hrc(path: Path, lead: str = "@") -> list[tuple[str, ...]]:
    """One path per leaf, codes from the top down."""
    paths: list[tuple[str, ...]] = []
    branch: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        depth, code = _split(line, lead)
        if not code:
            raise InputError(f"Line {number} of {path.name} has no code after {lead!r}.")
        if depth > len(branch):
            raise InputError(
                f"Line {number} of {path.name}: {code[:80]!r} has {depth} times {lead!r} in front, "
                f"and at most {len(branch)} can follow the line above it."
            )
        if depth < len(branch):  # the line before was the end of its branch
            paths.append(tuple(branch))
        branch[depth:] = [code]
    if branch:
        paths.append(tuple(branch))
    return paths


def _split(line: str, lead: str) -> tuple[int, str]:
    depth, rest = 0, line.strip()
    while rest.startswith(lead):
        depth, rest = depth + 1, rest[len(lead) :]
    return depth, rest.strip()


def _lines(path: Path) -> Sequence[str]:
    if not path.is_file():
        raise SourceError(f"There is no file {path}.")
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError):
        raise SourceError(f"{path.name} could not be read: it must be text in UTF-8.") from None
