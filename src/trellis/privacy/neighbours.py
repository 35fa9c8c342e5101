"""What a neighbouring data set is, and how far it moves a table of counts."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """The relation between two data sets that the guarantee makes hard to tell apart."""

    ADD_REMOVE = "add_remove"
    """One unit's records are added or removed: one cell of a partition moves."""

    REPLACE = "replace"
    """One unit's records are replaced by others: two cells of a partition move."""

    @property
    def cells_moved(self) -> int:
        """Cells of one partition that move when one record is added, removed or replaced."""
        return 1 if self is Neighbours.ADD_REMOVE else 2
