"""What will be measured, with which noise, and what it will cost: public, made without counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self, TypeVar

from trellis.errors import StructureError
from trellis.model.plans.design import Design
from trellis.model.plans.forecast import NOTHING_FORESEEN, Forecast
from trellis.model.plans.methods import Method
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import AreaPlan
from trellis.model.trees.spine import SpinePlan
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.protection import Protection

AnyDesign = TypeVar("AnyDesign", bound=Design)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything the stages after planning need to know, and all that a reader may ask.

    The kind of release is the type of the design. The forecast follows from the rest, so that two
    plans are equal whether or not it has been made.
    """

    # header
    release: str
    dataset: str
    protection: Protection
    budget: Budget
    confidence: Fraction

    # the tree
    levels: tuple[str, ...]
    sizes: tuple[int, ...]  # nodes by level, pass-through nodes of a ragged tree included
    areas: tuple[int, ...]  # areas by level that are published
    hierarchy_digest: str

    # what is measured, and what becomes of it
    schema: Schema
    queries: tuple[PlannedQuery, ...]
    unprotected_totals: tuple[str, ...]
    method: Method
    design: Design

    # areas that are not nodes of the tree, and the tree that serves them
    interests: tuple[AreaPlan, ...] = ()
    spine: SpinePlan | None = None

    forecast: Forecast = field(default=NOTHING_FORESEEN, compare=False)

    def __post_init__(self) -> None:
        noisy = [q for q in self.queries if q.noise is not None]
        if noisy and any(sum(noisy[i].share for i in path) != 1 for path in self._paths(noisy)):
            raise StructureError("The shares of the measured queries must sum to exactly one.")
        if any(q.share <= 0 for q in noisy) or any(
            q.share for q in self.queries if q.noise is None
        ):
            raise StructureError("A query has a positive share if and only if it has noise.")
        if unknown := {q.level for q in self.queries} - set(self.tree_levels):
            raise StructureError(f"Queries on unknown levels {sorted(unknown)}.")
        labels = [q.label for q in self.queries]
        if len(set(labels)) != len(labels):
            raise StructureError("A query is planned twice on one level.")
        for query in self.queries:
            if query.table == PARTITION:
                parse_query(self.schema, query.query)
        self.design.check(self)

    @property
    def kind(self) -> str:
        return self.design.kind

    def design_as(self, kind: type[AnyDesign]) -> AnyDesign:
        """The design, where it must be of one kind."""
        if not isinstance(self.design, kind):
            raise StructureError(f"This is a plan of {self.kind}, not of {kind.kind}.")
        return self.design

    def with_method(self, name: str) -> Self:
        """The same measurements estimated by another method; errors are not yet foreseen."""
        return replace(self, method=self.design.method(name), forecast=NOTHING_FORESEEN)

    @property
    def privacy(self) -> Guarantee:
        """What the release costs: one charge for each query with noise."""
        return Guarantee(
            self.protection,
            tuple(Charge(q.label, q.noise, q.table) for q in self.queries if q.noise is not None),
            self._paths([q for q in self.queries if q.noise is not None]) if self.spine else (),
        )

    def _paths(self, noisy: list[PlannedQuery]) -> tuple[tuple[int, ...], ...]:
        """The positions of the noisy queries that each kind of path from root to leaf meets."""
        if self.spine is None:
            return (tuple(range(len(noisy))),)
        position = dict(zip(self.spine.levels, range(len(self.spine.levels)), strict=True))
        met = {
            tuple(i for i, q in enumerate(noisy) if path[position[q.level]] == q.share_class)
            for path in self.spine.paths
        }
        return tuple(sorted(met))

    @property
    def tree_levels(self) -> tuple[str, ...]:
        """The levels of the tree that is measured."""
        return self.levels if self.spine is None else self.spine.levels

    @property
    def tree_sizes(self) -> tuple[int, ...]:
        return self.sizes if self.spine is None else self.spine.sizes

    def n_nodes(self, query: PlannedQuery) -> int:
        """How many nodes a query is asked of."""
        level = self.tree_levels.index(query.level)
        if self.spine is None or query.share_class is None:
            return self.tree_sizes[level]
        return self.spine.nodes[level][query.share_class]

    def query(self, level: str, query: str) -> PlannedQuery | None:
        """The planned query on a level, or None if it is not asked."""
        for planned in self.queries:
            if (planned.level, planned.query) == (level, query):
                return planned
        return None

    @property
    def cell_query(self) -> str:
        """The query that separates the cells."""
        return self.design.cell_query(self)

    def width(self, query: str) -> int:
        """How many numbers the answer of one area to a query has."""
        return self.design.width(self, query)
