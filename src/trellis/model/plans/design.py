"""What a plan has of its kind of release: one frozen type for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trellis.errors import SpecError, StructureError
from trellis.model.plans.methods import Method
from trellis.model.tables.queries import DETAILED, TOTAL, parse_query
from trellis.privacy.neighbours import Neighbours
from trellis.wording import privacy as words

if TYPE_CHECKING:
    from trellis.model.plans.plan import Plan


class Design(ABC):
    """The part of a plan that only its kind of release has, and what follows from the kind.

    Class attributes say what the numbers of the kind count; methods answer the questions
    that every stage asks. A subclass is a frozen dataclass and checks its own fields.
    """

    __slots__ = ()

    kind: ClassVar[str]
    methods: ClassVar[Mapping[str, Method]]
    title: ClassVar[str]
    """What is released, at the head of a report."""
    described: ClassVar[str]
    """The same in a record of deployments."""
    counted_in: ClassVar[str] = "records"
    """What a published count, its noise and its errors are in."""
    counted_for: ClassVar[str] = "areas"
    """What has a count of its own."""
    counted_at_most: ClassVar[str] = "areas"
    """The same where only some of them are published."""
    divides_records: ClassVar[bool] = True
    """Whether queries divide records by place and attributes: smaller changes then cost less, and
    the errors of linear estimates are known beforehand."""
    by_query: ClassVar[bool] = False
    """Whether a level has a table for each of several queries; see `published_tables`."""
    more_budget: ClassVar[str] = "a larger share (privacy.shares)"
    """What makes a margin smaller."""
    public_rules: ClassVar[str] = ""
    """What else is public, after "areas and categories"."""

    # -- in plan.json ---------------------------------------------------------------------------

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Keys of a plan that this kind adds."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The reverse, from all keys of a plan."""

    # -- what is measured -----------------------------------------------------------------------

    def check(self, plan: Plan) -> None:
        """Refuse a plan that this design does not fit."""
        if self.methods.get(plan.method.name) != plan.method:
            raise StructureError(f"There is no method {plan.method.name!r} for {self.kind}.")

    @classmethod
    def method(cls, name: str) -> Method:
        """The method of a name that a spec writes."""
        if name not in cls.methods:
            raise SpecError(
                f"There is no estimate.method {name!r}; use one of {', '.join(cls.methods)}."
            )
        return cls.methods[name]

    def fitting(self, plan: Plan) -> Mapping[str, Method]:
        """The methods that can work on what a plan measures."""
        return {n: m for n, m in self.methods.items() if m.on_spine or plan.spine is None}

    def why_few(self, plan: Plan) -> str:
        """Why other methods of the kind do not fit what a plan measures."""
        del plan
        return "the run has a spine"

    def cell_query(self, plan: Plan) -> str:
        """The query that separates the cells: with a single cell, the total does."""
        return TOTAL if plan.schema.n_cells == 1 else DETAILED

    def width(self, plan: Plan, query: str) -> int:
        """How many numbers the answer of one area to a query has."""
        return parse_query(plan.schema, query).n_cells

    def level_query(self, plan: Plan, level: str) -> str:
        """The query that separates the cells of a level."""
        del level
        return self.cell_query(plan)

    def is_exact(self, plan: Plan, level: str) -> bool:
        """Whether the counts of a level that is not measured are published exactly."""
        return level in plan.unprotected_totals

    def published_tables(self) -> tuple[tuple[str, str], ...]:
        """Pairs (level, query), where levels have tables by query."""
        return ()

    # -- in words -------------------------------------------------------------------------------

    def number_is_known(self, plan: Plan) -> bool:
        """Whether the number of records of one unit is not protected."""
        del plan
        return True

    def assumption(self, plan: Plan) -> str:
        """What must be true for the guarantee."""
        return words.NOTHING_ELSE.format(bound=contribution_bound(plan))

    def unprotected(self, plan: Plan) -> list[str]:
        """What is public, or published exactly."""
        sentences = [words.PUBLIC_LISTS.format(rules=self.public_rules)]
        if plan.protection.neighbours is Neighbours.REPLACE and plan.unprotected_totals:
            listed = ", ".join(plan.unprotected_totals)
            return [words.EXACT_TOTALS.format(levels=listed), *sentences]
        return sentences

    def exact_in_short(self, plan: Plan) -> list[str]:
        """Lines about exact numbers, for a screen."""
        return [
            f"Unprotected: totals of level {level!r} are published exactly."
            for level in plan.unprotected_totals
        ]

    def about_forecast(self, plan: Plan) -> str:
        """What to know about the expected errors, if anything."""
        del plan
        return ""

    def about_measurements(self) -> list[str]:
        """Sentences of the guarantee on what was measured."""
        return []


def contribution_bound(plan: Plan, sentence: str = words.AT_MOST) -> str:
    """How the assumption begins: the bound on the records of one unit."""
    protection = plan.protection
    return sentence.format(unit=protection.unit, most=protection.max_contribution)
