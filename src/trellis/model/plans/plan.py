"""What will be measured, with which noise, and what it will cost: public, made without counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import StructureError
from trellis.model.plans.flow_estimators import FLOW_ESTIMATORS
from trellis.model.plans.histograms import USED, HistogramPlan
from trellis.model.plans.size_mechanisms import GROUP_SIZES, SIZE_MECHANISMS
from trellis.model.tables.queries import DETAILED, TOTAL, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import AreaPlan, Effect
from trellis.model.trees.flows import FLOWS, FlowShape
from trellis.model.trees.spine import SpinePlan
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION, Table
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import Mechanism
from trellis.privacy.protection import Protection

LEAST_VARIANCE = 1e-9
"""What the variance of noise counts as at least where counts are estimated."""

WITHOUT_VARIANCES = ("topdown", "bottomup")
"""Methods whose standard errors are not known."""


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
    def reckoned_variance(self) -> float:
        """The variance that estimates reckon with: 0 for exact answers alone.

        Next to no noise counts as `LEAST_VARIANCE`. Standard errors then are stated too large, by
        less than anyone can see, and never too small; and a variance that is too small for a
        floating-point number does not make an answer exact.
        """
        return 0.0 if self.noise is None else max(self.variance, LEAST_VARIANCE)


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """Standard errors of the estimates of one level, known before any count is seen."""

    level: str
    areas: int
    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything the stages after planning need to know, and all that a reader may ask."""

    release: str
    kind: str
    dataset: str
    levels: tuple[str, ...]
    sizes: tuple[int, ...]  # nodes by level, pass-through nodes of a ragged tree included
    areas: tuple[int, ...]  # areas by level that are published
    schema: Schema
    protection: Protection
    budget: Budget
    queries: tuple[PlannedQuery, ...]
    unprotected_totals: tuple[str, ...]
    method: str
    confidence: Fraction
    hierarchy_digest: str
    expected_errors: tuple[ExpectedError, ...] | None
    weights: tuple[Fraction, ...] | None = None  # of the levels in sums of squares; group sizes
    flow: FlowShape | None = None  # the two hierarchies of flows
    penalty: Fraction | None = None  # price of a positive flow, in standard deviations of noise
    spine: SpinePlan | None = None  # the internal tree that is measured in place of the levels
    interests: tuple[AreaPlan, ...] = ()  # categories of areas that are released too
    effects: tuple[Effect, ...] | None = None  # what the spine does for them and for the levels
    histogram: HistogramPlan | None = None

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
        if self.kind == GROUP_SIZES and self.method not in SIZE_MECHANISMS:
            raise StructureError(f"There is no mechanism {self.method!r} for group sizes.")
        if self.kind == FLOWS:
            self._check_flows()
        if self.skips_unused and self.method != "topdown":
            raise StructureError("Rows that nobody uses can be left out for method topdown alone.")
        if self.weights is not None and len(self.weights) != len(self.levels):
            raise StructureError("There must be one weight for each level.")

    def _check_flows(self) -> None:
        if self.flow is None or self.flow.names != self.levels:
            raise StructureError("A plan of flows needs the levels of both sides.")
        if self.method not in FLOW_ESTIMATORS:
            raise StructureError(f"There is no estimator {self.method!r} of flows.")
        if [q.level for q in self.queries] != list(self.levels):
            raise StructureError("Flows are measured once on every level, from the root down.")

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
    def skips_unused(self) -> bool:
        """Whether only those rows of a histogram are measured that its estimator reads."""
        return self.histogram is not None and self.histogram.measurements == USED

    @property
    def cell_query(self) -> str:
        """The query that separates the cells: with a single cell, the total does."""
        if self.kind == GROUP_SIZES:
            return SIZE_MECHANISMS[self.method].query
        return TOTAL if self.schema.n_cells == 1 else DETAILED

    def flow_query(self, level: str) -> str:
        """The one query on a level of flows."""
        return self.queries[self.levels.index(level)].query

    def width(self, query: str) -> int:
        """How many numbers one area's answer to a query has."""
        if self.kind == FLOWS:
            return 1
        if self.kind == GROUP_SIZES and query != TOTAL:
            # The last cumulative number is that of all groups, which is public.
            return self.schema.n_cells - (query == SizeQuery.CUMULATIVE)
        return parse_query(self.schema, query).n_cells

    @property
    def adds_up(self) -> bool:
        """Whether the method promises that children add up to their parents."""
        return self.kind != GROUP_SIZES or SIZE_MECHANISMS[self.method].adds_up

    @property
    def is_whole(self) -> bool:
        """Whether the method promises whole, non-negative counts."""
        return self.method != "gls"

    @property
    def has_variances(self) -> bool:
        """Whether standard errors of the method are known."""
        return self.method not in WITHOUT_VARIANCES
