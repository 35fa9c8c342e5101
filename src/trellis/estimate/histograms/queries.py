"""The queries of one level, prepared once for all its families."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from trellis.model.arrays import Ints
from trellis.model.tables.queries import Query, is_finer
from trellis.numerics.histograms.marginals import MarginalTree
from trellis.numerics.histograms.whole_numbers.weighted_queries import WeightedQueries


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQueries:
    """Queries that are measured or bounded, and the tree in which they are added up.

    A query that separates all cells, whatever it is called, is measured on the cells themselves.
    `marginal_of[i]` is the place of query i in the tree, -1 if it needs none.
    """

    queries: tuple[Query, ...]
    tree: MarginalTree
    marginal_of: tuple[int, ...]

    @classmethod
    def of(
        cls, queries: Iterable[Query], n_cells: int, bounded: Iterable[str] = ()
    ) -> PreparedQueries:
        queries, bounded = tuple(queries), set(bounded)
        in_tree = [i for i, q in enumerate(queries) if not separates_cells(q) or q.name in bounded]
        tree = MarginalTree.of([queries[i].cell_of for i in in_tree], n_cells)
        place = {in_tree[position]: g for g, position in enumerate(tree.order)}
        return cls(queries, tree, tuple(place.get(i, -1) for i in range(len(queries))))

    def index(self, name: str) -> int:
        return next(i for i, query in enumerate(self.queries) if query.name == name)


def separates_cells(query: Query) -> bool:
    """Whether each cell of the query is one cell of the schema."""
    return query.n_cells == query.cell_of.size


def coarsened(query: Query, within: Query) -> Query | None:
    """`query` as a query on the cells of `within`; None unless it is coarser."""
    if not is_finer(within, query):
        return None
    cell_of = np.zeros(within.n_cells, dtype=np.int32)
    cell_of[within.cell_of] = query.cell_of
    return replace(query, cell_of=cell_of)


def stacked_queries(queries: Sequence[Query], weights: ArrayLike, active: Ints) -> WeightedQueries:
    """The queries one after the other, on some cells of the schema."""
    start = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum([query.n_cells for query in queries], out=start[1:])
    rows = np.zeros((len(queries), active.size), dtype=np.int64)
    for g, query in enumerate(queries):
        np.add(query.cell_of[active], start[g], out=rows[g])
    return WeightedQueries(rows, start, np.asarray(weights, dtype=np.float64))
