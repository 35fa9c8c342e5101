"""How stages tell that they are under way. Nothing here depends on confidential values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from trellis.errors import ConfidentialWarning


class Progress(Protocol):
    """Told when a stage begins; the block ends when the stage does.

    Loops inside say how much of it is done: see `trellis.execution.progress`. Without `line`,
    nothing is said where no bar can be drawn.
    """

    @contextmanager
    def stage(self, name: str, *, line: bool = True) -> Iterator[None]: ...

    def advise(self, text: str) -> None:
        """Something for the operator to think over; nothing of it is published."""
        ...

    def confirm(self, text: str) -> None:
        """The same before something is spent: the operator may stop here."""
        ...


class Silent:
    """Says nothing; warnings are Python's."""

    @contextmanager
    def stage(self, name: str, *, line: bool = True) -> Iterator[None]:
        del name, line
        yield

    def advise(self, text: str) -> None:
        del text

    def confirm(self, text: str) -> None:
        warnings.warn(text, ConfidentialWarning, stacklevel=2)
