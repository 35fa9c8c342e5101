"""Who is protected, against which change, and how far that change moves a table."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.errors import PrivacyError
from trellis.privacy.neighbours import Neighbours

NOT_KNOWN = "what was required of them at the time, which is not recorded here"
"""In `required`, for what was written before requirements were recorded."""


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit of protection and its neighbouring relation.

    A partition is a table in which every record falls into exactly one cell. One unit has at
    most `max_contribution` = m records. With k = 1 for `add_remove` and k = 2 for `replace`,
    a neighbour moves a partition at most as far as k cells moving by m each:

        L1 = k m,     squared L2 = k m^2.

    `within` names the level whose totals are published exactly. Then only replacements that
    stay inside one area of that level are protected: others would show in the exact totals.

    `required` names what the records must keep, or nothing is released. Then every release proves
    that they keep it: both of two neighbours do, or a release tells them apart with certainty.
    """

    unit: str
    neighbours: Neighbours
    max_contribution: int
    within: str | None = None
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_contribution < 1:
            raise PrivacyError("max_contribution must be a whole number of at least 1.")
        if self.within is not None and self.neighbours is Neighbours.ADD_REMOVE:
            raise PrivacyError(
                "Exact totals reveal whether a record was added or removed: "
                "use neighbours: replace, or list no unprotected totals."
            )

    @property
    def l1(self) -> int:
        return self.neighbours.cells_moved * self.max_contribution

    @property
    def l2_squared(self) -> int:
        return self.neighbours.cells_moved * self.max_contribution**2

    @property
    def restrictions(self) -> tuple[str, ...]:
        """What narrows the changes that are protected, one sentence each; mostly there is none."""
        exact = (
            f"Totals of level {self.within!r} are published exactly, so only changes that stay "
            "inside the same area of that level are protected."
        )
        kept = [exact] if self.within is not None else []
        return (*kept, *map(_required_in_words, self.required))

    def in_words(self, *, number_is_known: bool = True) -> str:
        """Who is protected against what, for people, restrictions included.

        `number_is_known`: that of a unit's records is not protected.
        """
        count = self.max_contribution
        records = (
            f"the one record of a {self.unit}"
            if count == 1
            else f"all records (at most {count}) of a {self.unit}"
        )
        what = (
            f"Protected is the presence of {records}: whether in the data or not."
            if self.neighbours is Neighbours.ADD_REMOVE
            else f"Protected is the content of {records}: any values against any others."
        )
        said = self.neighbours is Neighbours.REPLACE and count > 1 and number_is_known
        number = ["The number of these records is not protected."] if said else []
        return " ".join([what, *number, *self.restrictions])


def _required_in_words(what: str) -> str:
    return (
        f"The records must keep {what}, or nothing is released: it is public that they do, and "
        "only changes that keep it are protected."
    )
