"""The cells of a query, those that have the same variance under all operators as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.axis import Axis
from trellis.numerics.histograms.algebra.subspaces import Blocks


@dataclass(frozen=True, slots=True, eq=False)
class CellKinds:
    """Indicators of a query's cells, projected on the subspaces; one row for each kind of cell.

    Under M_U the projection on U has the square `lengths` * v' M_U v, v a row of `vectors`.
    """

    kind_of_cell: Ints
    vectors: Blocks
    lengths: Blocks

    @classmethod
    def of(
        cls, axes: Sequence[Axis], subspaces: Sequence[tuple[int, ...]], query: Query
    ) -> CellKinds:
        group_of = {factor.attribute: np.array(factor.group_of) for factor in query.factors}
        members, numbers = [], []
        for i, axis in enumerate(axes):
            groups = group_of.get(i, np.zeros(axis.size, dtype=np.int64))
            counts = np.zeros((groups.max() + 1, axis.n_atoms))
            np.add.at(counts, (groups, axis.atom_of), 1.0)
            kinds, number = np.unique(counts, axis=0, return_inverse=True)
            members.append(kinds)
            numbers.append(number.ravel())
        shape = tuple(len(kinds) for kinds in members)
        cells = np.unravel_index(np.arange(query.n_cells), query.shape or (1,))
        position = [np.zeros(query.n_cells, dtype=np.int64) for _ in axes]
        for cell, factor in zip(cells, query.factors, strict=False):
            position[factor.attribute] = numbers[factor.attribute][cell]
        kind_of_cell = np.ravel_multi_index(tuple(position), shape)
        vectors, lengths = [], []
        for subspace in subspaces:
            vector, length = np.ones((1, 1)), np.ones(1)
            for i, axis in enumerate(axes):
                inside, outside = axis.parts(members[i])
                if i in subspace:
                    vector = np.repeat(vector, len(outside), axis=0)
                    length = np.outer(length, outside).ravel()
                else:
                    vector = np.einsum("ka,lb->klab", vector, inside).reshape(
                        len(vector) * len(inside), -1
                    )
                    length = np.repeat(length, len(inside))
            vectors.append(vector)
            lengths.append(length)
        return cls(kind_of_cell, vectors, lengths)

    @property
    def sizes(self) -> Ints:
        """How many cells are of each kind."""
        return np.bincount(self.kind_of_cell, minlength=len(self.lengths[0]))

    def squares(self, subspace: int, blocks: Floats) -> Floats:
        """The squares of all kinds of cells under operators on one subspace: operators x kinds."""
        v = self.vectors[subspace]
        return ((blocks @ v.T) * v.T).sum(axis=1) * self.lengths[subspace]

    def variances(self, covariance: Blocks) -> Floats:
        """Variances of all kinds of cells: operators x kinds."""
        parts = [self.squares(i, block) for i, block in enumerate(covariance)]
        return np.maximum(np.sum(parts, axis=0), 0.0)

    def weighted(self, subspace: int, weights: Floats) -> Floats:
        """The matrix whose scalar product with M_U is the weighted sum of the squares."""
        v = self.vectors[subspace]
        return (v.T * (weights * self.lengths[subspace])) @ v
