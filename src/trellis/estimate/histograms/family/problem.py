"""One family of histograms: what its children are fitted to, and what they must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.family.bounds import FamilyBound, blocked_cells, whole_bounds
from trellis.estimate.histograms.objectives import Objective
from trellis.estimate.histograms.queries import stacked_queries
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import Query
from trellis.model.tables.schema import Schema
from trellis.numerics.histograms.whole_numbers.weighted_queries import WeightedQueries
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds

COARSE = 16
"""Queries with at most this many cells count twice when units are swapped."""


@dataclass(frozen=True, eq=False)  # without slots: what follows from the fields is kept
class FamilyProblem:
    """The children `nodes` of one parent, in the `active` cells that may hold anyone.

    `parent` has a count for each active cell; a root has none, and its only child is free to hold
    any sum. The objective says what children are fitted to; None where real ones are given.
    Rounding keeps answers to the queries `answered`. `queries` has all that `bounds` speak of.
    `impossible` marks cells, or children x cells, of the whole schema. Ties fall by index from
    `first_index` on. `level` and `name_of_cell` are for messages.
    """

    objective: Objective | None
    nodes: range
    active: Ints
    parent: Ints | None
    queries: Mapping[str, Query]
    answered: Sequence[Query]
    bounds: tuple[FamilyBound, ...] = ()
    impossible: Marks | None = None
    first_index: int = 0
    level: str = ""
    name_of_cell: Callable[[int], str] = "cell {}".format

    @property
    def n_children(self) -> int:
        return len(self.nodes)

    @property
    def is_root(self) -> bool:
        return self.parent is None

    def with_bounds(self, more: Iterable[FamilyBound]) -> FamilyProblem:
        """The same family under further bounds."""
        bounded = replace(self, bounds=(*self.bounds, *more))
        return bounded.without_blocked() if self.is_root else bounded

    def without_blocked(self) -> FamilyProblem:
        """A root without the cells that must be empty."""
        if not self.blocked.size:
            return self
        return replace(self, active=self.active[~self.blocked[:, 0]])

    def check_cells(self) -> None:
        """A cell of the parent must fit somewhere."""
        if self.parent is not None and self.blocked.size:
            full = self.blocked.all(axis=1) & (self.parent > 0)
            if full.any():
                cell = self.name_of_cell(int(self.active[np.argmax(full)]))
                raise Infeasible(
                    f"The parent has a count in {cell}, which none of its children may hold."
                )

    # -- in the form that kernels take ------------------------------------------------------------

    @property
    def totals(self) -> Floats:
        """What the children add up to, by cell; infinity if that is free."""
        if self.parent is None:
            return np.full(self.active.size, np.inf)
        return self.parent.astype(np.float64)

    @cached_property
    def blocked(self) -> Marks:
        """Cells x children that must hold nothing; empty if there are none."""
        blocked = blocked_cells(
            self.queries, self.bounds, self.active, self.n_children, self.impossible
        )
        if self.parent is not None and not self.parent.all():
            if not blocked.size:
                blocked = np.zeros((self.active.size, self.n_children), dtype=bool)
            blocked[self.parent == 0] = True
        return blocked

    @cached_property
    def whole_bounds(self) -> WholeBounds:
        return whole_bounds(self.queries, self.bounds, self.active, self.n_children)

    @cached_property
    def weighted(self) -> WeightedQueries:
        """The queries whose answers rounding keeps; in a root all weigh the same.

        Answers that are bounded hold for real counts, nearly, and are worth keeping.
        """
        if self.is_root:
            return stacked_queries(self.answered, np.ones(len(self.answered)), self.active)
        bounded = [self.queries[bound.query] for bound in self.bounds]
        weights = [2.0 if query.n_cells <= COARSE else 1.0 for query in self.answered]
        weights += [2.0 for _ in bounded]
        return stacked_queries([*self.answered, *bounded], weights, self.active)


def cell_names(schema: Schema) -> Callable[[int], str]:
    """How messages call a cell of the schema."""
    return lambda cell: " x ".join(schema.cells()[cell])
