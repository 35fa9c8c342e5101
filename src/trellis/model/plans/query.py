"""One planned query: its noise, and its price."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trellis.privacy.changes import PARTITION, Table
from trellis.privacy.mechanisms import Mechanism

LEAST_VARIANCE = 1e-9
"""The least variance of noise that estimates assume."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query on all areas of one level.

    `noise` is None where the answer is published exactly; such a query has no share.
    `table` is what the query costs: how far one unit moves its answers. The code that chooses the
    noise states it; the name of the query plays no part.
    On a spine, `share_class` is the position of the share among those of the level: the query is
    asked of the nodes that have it.
    """

    level: str
    query: str
    share: Fraction
    noise: Mechanism | None
    table: Table = PARTITION
    share_class: int | None = None

    @property
    def label(self) -> str:
        of = "" if self.share_class is None else f", share {self.share}"
        exact = ", exact" if self.noise is None else ""
        return f"{self.level}: {self.query}{of}{exact}"

    @property
    def variance(self) -> float:
        return 0.0 if self.noise is None else self.noise.variance

    @property
    def assumed_variance(self) -> float:
        """The variance that estimates assume: 0 for exact answers alone.

        Next to no noise counts as `LEAST_VARIANCE`. Standard errors are then stated too large, by
        less than anyone can see, and never too small; and a variance that is too small for a
        floating-point number does not make an answer exact.
        """
        return 0.0 if self.noise is None else max(self.variance, LEAST_VARIANCE)
