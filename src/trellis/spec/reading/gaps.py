"""Gaps that a starter spec leaves to be filled in by a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from trellis.errors import SpecError

GAP = "FILL_IN"


def refuse_gaps(content: Any) -> None:
    """Nothing is guessed: a spec with gaps is not used."""
    if gaps := list(_gaps(content, "")):
        keys = ", ".join(dict.fromkeys(gaps))
        raise SpecError(f"{GAP} is still at {keys}. Decide, and write your decision there.")


def _gaps(content: Any, place: str) -> Iterator[str]:
    if isinstance(content, BaseModel):
        content = dict(content)
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _gaps(value, f"{place}.{key}" if place else str(key))
            if key == GAP:
                yield place
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _gaps(value, place)
    elif isinstance(content, str) and content.strip() == GAP:
        yield place
