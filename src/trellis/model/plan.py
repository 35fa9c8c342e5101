"""What will be measured, with which noise, and what it will cost: public, made without counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import StructureError
from trellis.model.schema import Schema
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import Mechanism
from trellis.privacy.protection import Protection

TOTAL = "total"
"""The query that adds up all cells of an area."""
DETAILED = "detailed"
"""The query that asks for every cell of an area."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query on all areas of one level.

    `noise` is None where the answer is published exactly; such a query has no share.
    """

    level: str
    query: str
    share: Fraction
    noise: Mechanism | None

    @property
    def label(self) -> str:
        return f"{self.level}: {self.query}"

    @property
    def variance(self) -> float:
        return 0.0 if self.noise is None else self.noise.variance


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

    def __post_init__(self) -> None:
        noisy = [q for q in self.queries if q.noise is not None]
        if noisy and sum(q.share for q in noisy) != 1:
            raise StructureError("The shares of the measured queries must sum to exactly one.")
        if any(q.share <= 0 for q in noisy) or any(
            q.share for q in self.queries if q.noise is None
        ):
            raise StructureError("A query has a positive share if and only if it has noise.")
        if unknown := {q.level for q in self.queries} - set(self.levels):
            raise StructureError(f"Queries on unknown levels {sorted(unknown)}.")
        labels = [q.label for q in self.queries]
        if len(set(labels)) != len(labels):
            raise StructureError("A query is planned twice on one level.")
        if unknown := {q.query for q in self.queries} - {TOTAL, DETAILED}:
            raise StructureError(f"Unknown queries {sorted(unknown)}.")

    @property
    def privacy(self) -> Guarantee:
        """What the release costs: one charge for each query with noise."""
        return Guarantee(
            self.protection,
            tuple(Charge(q.label, q.noise) for q in self.queries if q.noise is not None),
        )

    def query(self, level: str, query: str) -> PlannedQuery | None:
        """The planned query on a level, or None if it is not asked."""
        for planned in self.queries:
            if (planned.level, planned.query) == (level, query):
                return planned
        return None

    @property
    def cell_query(self) -> str:
        """The query that separates the cells: with a single cell, the total does."""
        return TOTAL if self.schema.n_cells == 1 else DETAILED

    def width(self, query: str) -> int:
        """How many numbers one area's answer to a query has."""
        return 1 if query == TOTAL else self.schema.n_cells
