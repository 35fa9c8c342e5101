"""What the estimators of histograms read: a tree, a schema, noisy answers by level and query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trellis.errors import StructureError
from trellis.model.arrays import Ints
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy


class HistogramEvidence(Protocol):
    """Noisy answers that are read a run of nodes at a time, twice over, from several threads.

    `measured` has for each level, root first, the variance of each query that was measured there;
    0 stands for exact answers.
    """

    @property
    def hierarchy(self) -> Hierarchy: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def measured(self) -> Sequence[Mapping[str, float]]: ...

    def read(self, level: int, query: str, first: int, last: int) -> Ints:
        """Answers of the nodes first <= node < last of a level: nodes x cells of the query."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceInMemory:
    """All answers as arrays: `answers[level][query]` is nodes x cells of the query."""

    hierarchy: Hierarchy
    schema: Schema
    measured: Sequence[Mapping[str, float]]
    answers: Sequence[Mapping[str, Ints]]

    def __post_init__(self) -> None:
        levels = self.hierarchy.n_levels
        if len(self.measured) != levels or len(self.answers) != levels:
            raise StructureError(f"Give queries and answers for each of {levels} levels.")

    def read(self, level: int, query: str, first: int, last: int) -> Ints:
        return self.answers[level][query][first:last]
