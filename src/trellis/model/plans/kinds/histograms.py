"""The design of a release of histograms: tables, and the public rules that the counts obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trellis.errors import StructureError
from trellis.model.plans.design import Design
from trellis.model.plans.methods import GLS, GLS_TOPDOWN, TOPDOWN, Method, by_name
from trellis.wording import privacy as words
from trellis.wording.kinds import KINDS

if TYPE_CHECKING:
    from trellis.model.plans.plan import Plan

MOST_PASS_CELLS = 64
"""Cells of a marginal that a pass may fix: its precision is a dense matrix."""

COMPLETE, USED = "complete", "used"
"""What is measured: every row of every planned query, or the rows that `topdown` reads."""


@dataclass(frozen=True, slots=True)
class HistogramDesign(Design):
    """Tables to publish as pairs (level, query), and the public rules that the counts obey.

    `ordered` are the attributes whose categories have an order; `structural_zeros` are rules that
    describe impossible cells, of the records too if `zeros_bind_records`; `edit_rules` say where
    the presence of some requires others, and are kept where sums and bounds allow, or only audited;
    `passes` are the queries that each family fixes before the rest, in this order.
    """

    kind: ClassVar[str] = "histograms"
    methods: ClassVar[Mapping[str, Method]] = by_name([GLS_TOPDOWN, TOPDOWN, GLS])
    title: ClassVar[str] = KINDS["histograms"]["title"]
    described: ClassVar[str] = KINDS["histograms"]["described"]
    by_query: ClassVar[bool] = True
    more_budget: ClassVar[str] = "a larger share (privacy.shares, strategy), or a target (accuracy)"
    public_rules: ClassVar[str] = words.PUBLIC_RULES

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

    @property
    def skips_unused(self) -> bool:
        """Whether only those rows are measured that the estimator reads."""
        return self.measurements == USED

    def check(self, plan: Plan) -> None:
        Design.check(self, plan)
        if self.skips_unused and plan.method.looks_below:
            raise StructureError("Unused rows can be left out for method topdown only.")

    def fitting(self, plan: Plan) -> Mapping[str, Method]:
        methods = Design.fitting(self, plan)
        return {n: m for n, m in methods.items() if not (self.skips_unused and m.looks_below)}

    def why_few(self, plan: Plan) -> str:
        del plan
        return "only what topdown reads was measured (output.measurements: used)"

    def published_tables(self) -> tuple[tuple[str, str], ...]:
        return self.tables

    def about_measurements(self) -> list[str]:
        return [words.MEASURED_IN_PART] if self.skips_unused else []

    def to_json(self) -> dict[str, Any]:
        return {"histogram": asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        stated = content["histogram"]
        return cls(
            tables=tuple((level, query) for level, query in stated["tables"]),
            microdata=stated["microdata"],
            ordered=tuple(stated["ordered"]),
            structural_zeros=tuple(stated["structural_zeros"]),
            zeros_bind_records=stated.get("zeros_bind_records", True),
            edit_rules=tuple(stated["edit_rules"]),
            enforce_edit_rules=stated["enforce_edit_rules"],
            passes=tuple(stated["passes"]),
            measurements=stated["measurements"],
        )
