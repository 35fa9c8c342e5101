"""Forgeries that verification is known not to notice: the one table of exceptions.

A line goes when verification learns to notice its forgery; `make redteam` says which lines were not
needed. `docs/redteam.md` names them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unnoticed:
    """`file` and `what` are patterns of the whole name of a file, and of a forgery.

    `always`: no one can notice it from the folder alone. The others are yet to be built.
    """

    file: str
    what: str
    why: str
    always: bool = False

    def fits(self, file: str, what: str) -> bool:
        return bool(re.fullmatch(self.file, file) and re.fullmatch(self.what, what))


UNNOTICED: tuple[Unnoticed, ...] = (
    Unnoticed(
        "run.json",
        "value of (ledger_id|tie_seed)",
        "which ledger paid, and how ties were broken, in run.json",
        always=True,
    ),
    Unnoticed(
        "estimates/fit.json",
        "value of distance",
        "a distance to the best fit within its tolerance",
        always=True,
    ),
    Unnoticed(
        "measurements/.*parquet",
        "value of expanded",
        "below which pairs flows were measured, if another method could have left them",
        always=True,
    ),
    Unnoticed(
        "measurements/.*parquet",
        "value of value",
        "a noisy value that no estimate rests on",
        always=True,
    ),
)


def spare(used: Iterable[str]) -> list[str]:
    """Lines that were not needed this time."""
    return sorted({entry.why for entry in UNNOTICED} - set(used))


def excused(file: str, what: str) -> Unnoticed | None:
    return next((entry for entry in UNNOTICED if entry.fits(file, what)), None)
