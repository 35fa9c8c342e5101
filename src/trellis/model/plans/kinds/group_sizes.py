"""The design of a release of group sizes, and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trellis.errors import StructureError
from trellis.model.plans.design import Design, contribution_bound
from trellis.model.plans.methods import Method, by_name
from trellis.model.tables.queries import TOTAL
from trellis.privacy.group_size_changes import SizeQuery, SizeTable
from trellis.wording import privacy as words
from trellis.wording.kinds import FITTED, KINDS

if TYPE_CHECKING:
    from trellis.model.plans.plan import Plan

WIDEST_RATIO = 10**12
"""Between the weights of two levels in sums of squares."""


@dataclass(frozen=True, slots=True)
class SizeMethod(Method):
    """`query` is what it measures.

    `adds_up`: children add up to their parents and the root to the number of groups, always.
    `keeps_groups`: so does every area to its own public number of groups.
    """

    query: SizeQuery = SizeQuery.CUMULATIVE
    keeps_groups: bool = False


def _method(name: str, query: SizeQuery, *, adds_up: bool, keeps_groups: bool) -> SizeMethod:
    fitted = FITTED.format(method=name)
    return SizeMethod(name, fitted, adds_up=adds_up, query=query, keeps_groups=keeps_groups)


SIZE_METHODS: Mapping[str, SizeMethod] = by_name(
    [
        _method("histogram_relaxed", SizeQuery.HISTOGRAM, adds_up=False, keeps_groups=False),
        _method("histogram_exact", SizeQuery.HISTOGRAM, adds_up=True, keeps_groups=False),
        _method("cumulative_relaxed", SizeQuery.CUMULATIVE, adds_up=False, keeps_groups=True),
        _method("cumulative_exact", SizeQuery.CUMULATIVE, adds_up=True, keeps_groups=False),
        _method("cumulative_joint", SizeQuery.CUMULATIVE, adds_up=True, keeps_groups=True),
    ]
)

DEFAULT_SIZE_METHOD = "cumulative_joint"


@dataclass(frozen=True, slots=True)
class GroupSizesDesign(Design):
    """`weights` of the levels in sums of squares."""

    kind: ClassVar[str] = "group_sizes"
    methods: ClassVar[Mapping[str, Method]] = SIZE_METHODS
    title: ClassVar[str] = KINDS["group_sizes"]["title"]
    described: ClassVar[str] = KINDS["group_sizes"]["described"]
    counted_in: ClassVar[str] = KINDS["group_sizes"]["counted_in"]
    divides_records: ClassVar[bool] = False

    weights: tuple[Fraction, ...]

    def check(self, plan: Plan) -> None:
        Design.check(self, plan)
        if len(self.weights) != len(plan.levels):
            raise StructureError("There must be one weight for each level.")

    def fitting(self, plan: Plan) -> Mapping[str, Method]:
        measured = size_method(plan).query
        return {name: m for name, m in SIZE_METHODS.items() if m.query is measured}

    def why_few(self, plan: Plan) -> str:
        return f"{size_method(plan).query} counts of sizes"

    def cell_query(self, plan: Plan) -> str:
        return size_method(plan).query

    def width(self, plan: Plan, query: str) -> int:
        if query == TOTAL:
            return 1
        # The last cumulative number is that of all groups, which is public.
        return plan.schema.n_cells - (query == SizeQuery.CUMULATIVE)

    def is_exact(self, plan: Plan, level: str) -> bool:
        """Never: numbers of groups are exact, but their sizes are not."""
        del plan, level
        return False

    def exact_in_short(self, plan: Plan) -> list[str]:
        del plan
        return ["Unprotected: the register; numbers of groups are exact on every level."]

    def assumption(self, plan: Plan) -> str:
        tables = [q.table for q in plan.queries if isinstance(q.table, SizeTable)]
        quantity = max(table.max_quantity for table in tables)
        return words.SIZE_LISTS.format(bound=contribution_bound(plan), quantity=quantity)

    def unprotected(self, plan: Plan) -> list[str]:
        return [
            words.REGISTER.format(levels=", ".join(plan.unprotected_totals)),
            words.LARGEST_SIZE.format(most=plan.schema.n_cells - 1),
        ]

    def to_json(self) -> dict[str, Any]:
        return {"weights": [str(weight) for weight in self.weights]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        return cls(tuple(map(Fraction, content["weights"])))


def size_method(plan: Plan) -> SizeMethod:
    """The method of a plan of group sizes."""
    assert isinstance(plan.method, SizeMethod)
    return plan.method
