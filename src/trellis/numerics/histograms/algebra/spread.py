"""Where the answers of a query go when a gain is applied to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.axis import Axis
from trellis.numerics.histograms.algebra.subspaces import cell_of_kept, kept_attributes, n_atoms
from trellis.numerics.histograms.marginals import MarginalTree, Stack


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Answers of a query, handed out evenly to its cells and added up on the sets inside its own.

    Row r, a cell of what the query keeps with atoms of the rest, gets `part[r]` of the answer
    `cell_of_row[r]`. Marginal g of the stack goes into the rows from `targets[g]` of the algebra's
    tree, weighted by the entries from `starts[g]`; the cells themselves by entry `whole`, if any.
    """

    cell_of_row: Ints
    part: Floats
    kept_sets: list[tuple[int, ...]]
    stack: Stack
    atoms: Ints
    starts: Ints
    targets: Ints
    whole: int

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        kept_sets: Sequence[tuple[int, ...]],
        algebra_tree: MarginalTree,
        query: Query,
    ) -> Spread:
        """For the algebra with these axes, kept sets and tree of marginals."""
        able = [i for i in kept_attributes(query) if axes[i].has_contrasts]
        own = tuple(sorted(able))
        row_of = cell_of_kept(axes, own)
        n_rows = int(row_of.max()) + 1
        cell_of_row = np.zeros(n_rows, dtype=np.int64)
        cell_of_row[row_of] = query.cell_of
        part = np.bincount(row_of) / np.bincount(query.cell_of)[cell_of_row]
        counts = [n_atoms(axes, t) for t in kept_sets]
        inside = [i for i, t in enumerate(kept_sets) if set(t) <= set(own)]
        start = dict(zip(inside, np.cumsum([0, *(counts[i] ** 2 for i in inside)]), strict=False))
        place = {position: g for g, position in enumerate(algebra_tree.order)}
        in_tree = [i for i, t in enumerate(kept_sets) if len(t) < len(axes)]
        listed = [i for i in inside if i in in_tree]
        maps = []
        for i in listed:
            coarser = np.zeros(n_rows, dtype=np.int64)
            coarser[row_of] = cell_of_kept(axes, kept_sets[i])
            maps.append(coarser)
        tree = MarginalTree.of(maps, n_rows)
        chosen = [listed[position] for position in tree.order]
        targets = [algebra_tree.stack.row_start[place[in_tree.index(i)]] for i in chosen]
        whole = [int(start[i]) for i in inside if i not in in_tree]
        return cls(
            cell_of_row,
            part,
            [kept_sets[i] for i in inside],
            tree.stack,
            np.array([counts[i] for i in chosen], dtype=np.int64),
            np.array([start[i] for i in chosen], dtype=np.int64),
            np.array(targets, dtype=np.int64),
            whole[0] if whole else -1,
        )
