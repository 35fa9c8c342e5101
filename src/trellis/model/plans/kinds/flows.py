"""The design of a release of flows, and its methods.

A rule fits the children of one pair to its count. Alone it looks at one level after another; after
`gls_` it is given estimates that also rest on the levels below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trellis.errors import StructureError
from trellis.model.plans.design import Design, contribution_bound
from trellis.model.plans.methods import Method, by_name
from trellis.model.trees.flows import FlowShape, Side
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.wording import privacy as words
from trellis.wording.kinds import FITTED, KINDS

if TYPE_CHECKING:
    from trellis.model.plans.plan import Plan

DEFAULT_PENALTY = 2
"""The penalty of the sparse methods, in standard deviations."""
MOST_PENALTY = 1000


@dataclass(frozen=True, slots=True)
class FlowMethod(Method):
    """`rule` fits the children of one pair; the sparse rule sets a price on positive flows."""

    rule: str = "chebyshev"

    @property
    def has_penalty(self) -> bool:
        return self.rule == "sparse"

    @property
    def descent_rule(self) -> str:
        """The rule that decides below which pairs the next level is measured.

        What lies below is unknown then, so a method that looks there leaves it to `chebyshev`.
        """
        return "chebyshev" if self.looks_below else self.rule


def _method(name: str) -> FlowMethod:
    fitted = FITTED.format(method=name)
    rule = name.removeprefix("gls_")
    return FlowMethod(name, fitted, looks_below=rule != name, rule=rule)


FLOW_METHODS: Mapping[str, FlowMethod] = by_name(
    map(
        _method,
        (
            "chebyshev", "chebyshev_descending", "l2", "sparse",
            "gls_chebyshev", "gls_l2", "gls_sparse",
        ),
    )
)  # fmt: skip

DEFAULT_FLOW_METHOD = "gls_chebyshev"


@dataclass(frozen=True, slots=True)
class FlowDesign(Design):
    """The two hierarchies; `penalty` is the price of a positive flow, in standard deviations."""

    kind: ClassVar[str] = "flows"
    methods: ClassVar[Mapping[str, Method]] = FLOW_METHODS
    title: ClassVar[str] = KINDS["flows"]["title"]
    described: ClassVar[str] = KINDS["flows"]["described"]
    counted_in: ClassVar[str] = KINDS["flows"]["counted_in"]
    counted_for: ClassVar[str] = "pairs"
    counted_at_most: ClassVar[str] = KINDS["flows"]["counted_at_most"]
    divides_records: ClassVar[bool] = False

    shape: FlowShape
    penalty: Fraction | None = None

    def check(self, plan: Plan) -> None:
        Design.check(self, plan)
        if self.shape.names != plan.levels:
            raise StructureError("A plan of flows needs the levels of both sides.")
        if [q.level for q in plan.queries] != list(plan.levels):
            raise StructureError("Flows are measured once on every level, from the root down.")

    def width(self, plan: Plan, query: str) -> int:
        del plan, query
        return 1

    def level_query(self, plan: Plan, level: str) -> str:
        return plan.queries[plan.levels.index(level)].query

    def about_forecast(self, plan: Plan) -> str:
        if not plan.method.looks_below:
            return ""
        return "Standard errors are at most these: measurements below a pair lower them."

    def number_is_known(self, plan: Plan) -> bool:
        """With a noisy total, the number of a unit's trips is protected too."""
        return bool(plan.unprotected_totals)

    def assumption(self, plan: Plan) -> str:
        sentence = words.JUST_AS_MANY if plan.unprotected_totals else words.AT_MOST
        distinct = any(
            isinstance(q.table, FlowTable) and q.table.query is FlowQuery.DISTINCT_PAIRS
            for q in plan.queries
        )
        return words.FLOW_LISTS.format(
            bound=contribution_bound(plan, sentence), distinct=words.DISTINCT if distinct else ""
        )

    def to_json(self) -> dict[str, Any]:
        penalty = {} if self.penalty is None else {"penalty": str(self.penalty)}
        return {"flow": asdict(self.shape), **penalty}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        flow = content["flow"]
        shape = FlowShape(
            Side(flow["tree"]),
            tuple(flow["origin_levels"]),
            tuple(flow["destination_levels"]),
            tuple(flow["attributes"]),
        )
        return cls(shape, Fraction(content["penalty"]) if "penalty" in content else None)


def flow_method(plan: Plan) -> FlowMethod:
    """The method of a plan of flows."""
    assert isinstance(plan.method, FlowMethod)
    return plan.method
