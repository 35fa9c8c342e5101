"""Who is protected, against which change, and how far that change moves a table."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.errors import PrivacyError
from trellis.privacy.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Protection:
    """The unit of protection and its neighbouring relation.

    A partition is a table in which every record falls into exactly one cell. One unit has at
    most `max_contribution` = m records. With k = 1 for `add_remove` and k = 2 for `replace`,
    a neighbour moves a partition at most as far as k cells moving by m each:

        L1 = k m,     squared L2 = k m^2.

    `within` names the level whose totals are published exactly. Then only replacements that
    stay inside one area of that level are protected: others would show in the exact totals.
    """

    unit: str
    neighbours: Neighbours
    max_contribution: int
    within: str | None = None

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

    def in_words(self, *, number_is_known: bool = True) -> str:
        """One sentence for people; `number_is_known`: that of a unit's records is not protected."""
        count = self.max_contribution
        records = (
            f"the one record of a {self.unit}"
            if count == 1
            else (f"all records (at most {count}) of a {self.unit}")
        )
        if self.neighbours is Neighbours.ADD_REMOVE:
            return f"Protected is the presence of {records}: whether in the data or not."
        where = (
            ""
            if self.within is None
            else (f", as long as they stay inside the same area of level {self.within!r}")
        )
        said = count > 1 and number_is_known
        number = " The number of these records is not protected." if said else ""
        return (
            f"Protected is the content of {records}: any values against any others{where}.{number}"
        )
