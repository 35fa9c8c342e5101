"""The queries of one level, prepared once for all its families."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trellis.model.tables.queries import Query
from trellis.numerics.histograms.marginals import MarginalTree


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
