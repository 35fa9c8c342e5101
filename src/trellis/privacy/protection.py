"""Who is protected, against which change, and how far that change moves a table."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.errors import PrivacyError
from trellis.privacy.neighbours import Neighbours
from trellis.wording import privacy as words

NOT_KNOWN = words.NOT_KNOWN
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
        kept = [] if self.within is None else [words.WITHIN.format(level=self.within)]
        return (*kept, *(words.REQUIRED.format(what=what) for what in self.required))

    def in_words(self, *, number_is_known: bool = True) -> str:
        """Who is protected against what, for people, restrictions included.

        `number_is_known`: that of a unit's records is not protected.
        """
        count = self.max_contribution
        replaced = self.neighbours is Neighbours.REPLACE
        of_one = words.ONE_RECORD if count == 1 else words.ALL_RECORDS
        records = of_one.format(unit=self.unit, most=count)
        what = (words.CONTENT if replaced else words.PRESENCE).format(records=records)
        number = [words.NUMBER_IS_KNOWN] if replaced and count > 1 and number_is_known else []
        return " ".join([what, *number, *self.restrictions])
