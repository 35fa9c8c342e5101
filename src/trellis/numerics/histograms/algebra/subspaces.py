"""Subspaces with contrasts in some attributes, and where the cells of a histogram fall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.axis import Axis

Blocks = list[Floats]
"""One array of shape (operators, a, a) for each subspace U."""


def kept_attributes(query: Query) -> list[int]:
    """Those that a query neither sums nor recodes."""
    return [factor.attribute for factor in query.factors if not factor.is_recoded]


def n_atoms(axes: Sequence[Axis], without: Sequence[int]) -> int:
    """Of all attributes but some, together."""
    return int(np.prod([axis.n_atoms for i, axis in enumerate(axes) if i not in without]))


def cell_of_kept(axes: Sequence[Axis], kept_set: Sequence[int]) -> Ints:
    """The row of each cell: cells of the kept attributes before atoms of the others."""
    positions = np.unravel_index(
        np.arange(int(np.prod([axis.size for axis in axes]))), [axis.size for axis in axes]
    )
    row = np.zeros(positions[0].size, dtype=np.int64)
    for i in kept_set:
        row = row * axes[i].size + positions[i]
    for i, axis in enumerate(axes):
        if i not in kept_set:
            row = row * axis.n_atoms + axis.atom_of[positions[i]]
    return row


def with_identity(block: Floats, sizes: Sequence[int], extra: Sequence[int]) -> Floats:
    """A block with identities put in at the positions `extra` of the factors with these sizes."""
    n = len(block)
    own = [size for i, size in enumerate(sizes) if i not in extra]
    tensor = block.reshape(n, *own, *own)
    for position in sorted(extra):
        size = sizes[position]
        left = tensor.ndim // 2  # factors so far, counted with the axis of operators
        before = tensor.reshape(*tensor.shape[: 1 + position], 1, *tensor.shape[1 + position :])
        column = left + 1 + position + 1
        before = before.reshape(*before.shape[:column], 1, *before.shape[column:])
        eye_shape = [1] * before.ndim
        eye_shape[1 + position] = eye_shape[column] = size
        tensor = before * np.eye(size).reshape(eye_shape)
    return tensor.reshape(n, int(np.prod(sizes)), int(np.prod(sizes)))
