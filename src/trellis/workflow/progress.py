"""How stages tell that they are under way. Nothing here depends on confidential values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Told when a stage begins, where the block ends with the stage, and of what to think over."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]: ...

    def warn(self, text: str) -> None: ...


class Silent:
    """Says nothing."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        del name
        yield

    def warn(self, text: str) -> None:
        del text
