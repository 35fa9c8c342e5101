"""What an attack is, and what comes of one trial of it."""

from __future__ import annotations

import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from trellis.errors import TrellisError


@dataclass(frozen=True)
class Outcome:
    """`tried` counts what was tried in one trial; `worst` is the largest part of what is allowed.

    `spec` is what reproduces a finding, together with the seed.
    """

    tried: int
    findings: tuple[str, ...] = ()
    worst: float | None = None
    spec: str = ""
    notes: tuple[str, ...] = ()
    """What a table of exceptions let pass."""


Trial = Callable[[str, int, Path], Outcome]
"""A trial of a kind with a seed, in a folder of its own."""

REFUSED = Outcome(0)
"""The drawn spec is not one that the program accepts: nothing to attack."""


@dataclass(frozen=True)
class Attack:
    """`weight` is the part of the time that it gets, relative to others."""

    name: str
    about: str
    kinds: tuple[str, ...]
    trial: Trial
    weight: float = 1.0


class Hung(Exception):
    """A trial that takes far longer than any should."""


MOST_SECONDS = 240


def attempt(attack: Attack, kind: str, seed: int) -> Outcome:
    """One trial; whatever it raises is a finding."""
    with tempfile.TemporaryDirectory(prefix="redteam-") as place, _bounded():
        try:
            return attack.trial(kind, seed, Path(place))
        except Hung:
            return Outcome(1, (f"took more than {MOST_SECONDS} seconds",))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = "refused with" if isinstance(error, TrellisError) else "raised"
            place_of = f"{Path(where.filename).name}:{where.lineno}"
            return Outcome(1, (f"{what} {type(error).__name__}: {error} ({place_of})",))


@contextmanager
def _bounded() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
