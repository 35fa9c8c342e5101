"""What a release of histograms plans beside its queries."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.errors import StructureError

MOST_PASS_CELLS = 64
"""Cells of a marginal that a pass may fix: its precision is a dense matrix."""

COMPLETE, USED = "complete", "used"
"""What is measured: every row of every planned query, or the rows that `topdown` reads."""


@dataclass(frozen=True, slots=True)
class HistogramPlan:
    """Tables to publish as pairs (level, query), and the public rules that the counts obey.

    `ordered` are the attributes whose categories have an order; `structural_zeros` are rules that
    describe impossible cells, of the records too if `zeros_bind_records`; `edit_rules` say where
    the presence of some requires others, and are kept where sums and bounds allow, or only audited;
    `passes` are the queries that each family fixes before the rest, in this order.
    """

    tables: tuple[tuple[str, str], ...]
    microdata: bool = False
    ordered: tuple[str, ...] = ()
    structural_zeros: tuple[str, ...] = ()
    zeros_bind_records: bool = True
    edit_rules: tuple[str, ...] = ()
    enforce_edit_rules: bool = True
    passes: tuple[str, ...] = ()
    measurements: str = COMPLETE

    def __post_init__(self) -> None:
        if len(set(self.tables)) != len(self.tables):
            raise StructureError("A table is to be published twice.")
        if self.measurements not in (COMPLETE, USED):
            raise StructureError(f"Measurements cannot be {self.measurements!r}.")
