"""Best linear unbiased estimates of vectors on a tree, by regression: up, then down.

On the way up a node is regressed on its own measurements and on the sum of its children's
estimates; on the way down children share what their parent has more than their sum, by variance.
Nodes whose subtrees have the same shape have the same matrices, which are made once for each shape.

Where totals are exact, a vector is its total spread evenly, plus a part whose total is 0: the
estimates are about the second part alone.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space
from scipy.sparse import csr_array

_AT_ONCE = 1 << 21
"""Numbers of matrices that are written out for nodes at a time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on a level: rows x length of a vector, variances, nodes x rows x columns.

    Columns are vectors that have nothing to do with one another. `total` has exact totals, if
    these are known, of all nodes.
    """

    rows: np.ndarray
    variance: np.ndarray
    values: np.ndarray
    total: np.ndarray | None = None


class Shapes:
    """A tree by the parents of each level, root first, and which nodes are alike.

    `below[level]` is the class of each node by the shape of its subtree, `final[level]` also by
    the shapes of all its ancestors' families.
    """

    def __init__(self, parents: list[np.ndarray]) -> None:
        self.parents = parents
        self.sizes = [parent.size for parent in parents]
        below = [np.zeros(self.sizes[-1], dtype=np.int64)]
        for parent, size in zip(reversed(parents[1:]), reversed(self.sizes[:-1]), strict=True):
            # A sum of random words stands for the classes of all children.
            words = np.array(
                [secrets.randbits(64) for _ in range(int(below[-1].max()) + 1)], dtype=np.uint64
            )
            key = np.zeros(size, dtype=np.uint64)
            np.add.at(key, parent, words[below[-1]])
            below.append(np.unique(key, return_inverse=True)[1])
        self.below = below[::-1]
        self.final = [np.zeros(1, dtype=np.int64)]
        for parent, own in zip(parents[1:], self.below[1:], strict=True):
            key = self.final[-1][parent] * (own.max() + 1) + own
            self.final.append(np.unique(key, return_inverse=True)[1])

    def examples(self, classes: np.ndarray) -> np.ndarray:
        return np.unique(classes, return_index=True)[1]

    @property
    def n_classes(self) -> int:
        return sum(int(classes.max()) + 1 for classes in self.final)


@dataclass(slots=True)
class Subtrees:
    """Estimates y from each node's subtree: the vector is `basis` y and the spread total.

    `covariance` by class of `Shapes.below`; `sums` and `spread` are those of the children of the
    nodes of the level above, the latter by their class.
    """

    basis: np.ndarray
    covariance: np.ndarray
    value: np.ndarray
    sums: np.ndarray | None = None
    spread: np.ndarray | None = None

    def vectors(self, total: np.ndarray | None) -> np.ndarray:
        """The estimates themselves: nodes x length x columns."""
        return _vectors(self.basis, self.value, total)


@dataclass(slots=True)
class Final:
    """Estimates from the whole tree: nodes x length x columns; covariances by class."""

    value: np.ndarray
    covariance: np.ndarray


def upwards(shapes: Shapes, levels: list[Measured]) -> list[Subtrees]:
    """From the leaves, whose own measurements determine all; root first in the result."""
    out: list[Subtrees] = []
    for level in reversed(range(len(levels))):
        here = levels[level]
        rows, values = here.rows, here.values
        noise = np.repeat(np.diag(here.variance)[np.newaxis], int(shapes.below[level].max()) + 1, 0)
        if out:
            below, parent = out[-1], shapes.parents[level + 1]
            below.sums = _sums(below.value, parent, shapes.sizes[level])
            below.spread = _spread(shapes, level, below.covariance)
            rows = np.concatenate([below.basis.T, rows])
            values = np.concatenate([below.sums, values], axis=1)
            noise = np.array([block_diag(s, n) for s, n in zip(below.spread, noise, strict=True)])
        length = rows.shape[1]
        basis = np.eye(length)
        if here.total is not None:
            basis = null_space(np.ones((1, length)))
            spread = rows.sum(axis=1) / length
            values = values - here.total[:, np.newaxis, np.newaxis] * spread[:, np.newaxis]
        gain, covariance = _regression(rows @ basis, noise)
        out.append(Subtrees(basis, covariance, _by_class(gain, shapes.below[level], values)))
    return out[::-1]


def downwards(shapes: Shapes, levels: list[Measured], up: list[Subtrees]) -> list[Final]:
    first = up[0]
    basis = first.basis
    out = [
        Final(
            first.vectors(levels[0].total),
            basis @ first.covariance @ basis.T,
        )
    ]
    for level in range(1, len(levels)):
        own, above = up[level], out[-1]
        assert own.sums is not None
        assert own.spread is not None
        parent, classes = shapes.parents[level], shapes.final[level]
        example = shapes.examples(classes)
        p = own.covariance[shapes.below[level][example]]
        total = own.spread[shapes.below[level - 1][parent[example]]]
        gain = np.swapaxes(_solve(total, p), 1, 2)
        k = above.covariance[shapes.final[level - 1][parent[example]]]
        left = np.eye(p.shape[1]) - gain
        inherited = own.basis.T @ k @ own.basis
        covariance = left @ p @ _t(left) + gain @ (total - p + inherited) @ _t(gain)
        apart = np.tensordot(above.value, own.basis, (1, 0)).swapaxes(1, 2) - own.sums
        value = own.value + _by_class(gain, classes, apart, parent)
        found = _vectors(own.basis, value, levels[level].total)
        out.append(Final(found, own.basis @ covariance @ own.basis.T))
    return out


def _vectors(basis: np.ndarray, value: np.ndarray, total: np.ndarray | None) -> np.ndarray:
    found = np.tensordot(value, basis, (1, 1)).swapaxes(1, 2)
    if total is not None:
        found = found + (total / len(basis))[:, np.newaxis, np.newaxis]
    return found


def _regression(rows: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gains and covariances of least squares, by class; noise is a covariance of the rows."""
    weighed = _solve(noise, np.broadcast_to(rows, (len(noise), *rows.shape)))
    covariance = _inverse(rows.T @ weighed)
    return covariance @ _t(weighed), covariance


def _inverse(matrices: np.ndarray) -> np.ndarray:
    return _solve(matrices, np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape))


def _solve(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Scaled to a diagonal of ones first: precisions may differ by orders of magnitude."""
    root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))[:, :, np.newaxis]
    return np.linalg.solve(matrices / (root * _t(root)), right / root) / root


def _t(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, 1, 2)


def _sums(values: np.ndarray, group: np.ndarray, size: int) -> np.ndarray:
    """Rows of each group added up."""
    adder = csr_array((np.ones(group.size), (group, np.arange(group.size))), (size, group.size))
    return (adder @ values.reshape(len(values), -1)).reshape(size, *values.shape[1:])


def _spread(shapes: Shapes, level: int, covariance: np.ndarray) -> np.ndarray:
    """The covariance of the sum of all children, by class of their parent."""
    parent, below = shapes.parents[level + 1], shapes.below[level + 1]
    example = shapes.examples(shapes.below[level])
    place = np.full(shapes.sizes[level], -1)
    place[example] = np.arange(example.size)
    children = np.flatnonzero(place[parent] >= 0)
    numbers = csr_array(
        (np.ones(children.size), (place[parent[children]], below[children])),
        (example.size, len(covariance)),
    )
    found = numbers @ covariance.reshape(len(covariance), -1)
    return found.reshape(example.size, *covariance.shape[1:])


def _by_class(
    matrices: np.ndarray, classes: np.ndarray, values: np.ndarray, place: np.ndarray | None = None
) -> np.ndarray:
    """The matrix of each node's class times its values, which are at its `place`."""
    if len(matrices) == 1 and place is None:
        return matrices[0] @ values
    out = np.empty((classes.size, matrices.shape[1], values.shape[2]))
    size = max(1, matrices.shape[1] * max(matrices.shape[2], values.shape[2]))
    step = max(1, _AT_ONCE // size)
    for first in range(0, classes.size, step):
        cut = slice(first, first + step)
        at = values[cut] if place is None else values[place[cut]]
        out[cut] = matrices[classes[cut]] @ at
    return out
