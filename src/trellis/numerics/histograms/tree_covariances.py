r"""Covariances of the best linear unbiased estimates of histograms on a tree.

They depend on the tree and on what is measured with which variance, not on the values. With P a
covariance and J its inverse, on each subspace of the algebra,

    up:    P_S = sum_c P_c,  J = Lambda + P_S^-1          (a leaf: J = Lambda),
    down:  K_c = P_c - P_c J_S P_c + (P_c J_S) K_p (P_c J_S)'      (root: K = P),

Lambda = sum_q Q'Q / variance over what is measured on the node, J_S = P_S^-1. Exact answers and
coordinates that nothing determines are the same for all nodes of a level: the first have no
variance, the second no precision, and inverses are taken on the coordinates in between. Variances
may differ by any factor, unless recodes are not nested: see `LEAST_RATIO`.

Nodes whose subtrees have the same shape share their matrices: all leaves, all parents of n leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from trellis.errors import StructureError
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import Query
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.algebra.subspaces import Blocks

Coordinates = list[Marks]
"""A set of coordinates in each subspace."""

Measured = Sequence[Mapping[str, float]]
"""For each level, root first, the variance of each query that is measured there."""


LEAST_RATIO = 1e-9
"""The least ratio of a variance to the greatest one where recodes of an attribute are not nested.

Then matrices with greater differences cannot be inverted. More precise answers count as less
precise than they are: estimates hardly change, and standard errors are stated too large.
"""


class LevelPrecision(NamedTuple):
    """What the measurements of one level alone say, and what is known there with those below."""

    own: Blocks
    exact: Coordinates
    free: Coordinates
    unknown: Coordinates


class LevelSubtrees(NamedTuple):
    """Classes of nodes with equal subtrees, and their matrices."""

    class_of: Ints
    covariance: Blocks
    precision: Blocks
    children_precision: Blocks | None


class LevelFinal(NamedTuple):
    """Classes of nodes with equal final covariances; `unknown` is by class and coordinate."""

    class_of: Ints
    covariance: Blocks
    unknown: Coordinates


def level_precisions(
    algebra: Algebra, queries: Mapping[str, Query], measured: Measured
) -> list[LevelPrecision]:
    """From the leaves up: what is exact, free or unknown on each level; returned root first."""
    levels: list[LevelPrecision] = []
    sizes = [block.shape[1] for block in algebra.gram(next(iter(queries.values())))]
    exact = [np.zeros(size, dtype=bool) for size in sizes]
    known = [np.zeros(size, dtype=bool) for size in sizes]
    for variances in reversed(measured):
        own = [np.zeros((1, size, size)) for size in sizes]
        exact, known = [e.copy() for e in exact], [k.copy() for k in known]
        for name, variance in variances.items():
            if variance == inf:
                continue
            gram, support = algebra.gram(queries[name]), algebra.support(queries[name])
            for i, (block, inside) in enumerate(zip(gram, support, strict=True)):
                known[i] |= inside
                if variance == 0:
                    exact[i] |= inside
                else:
                    own[i] += block / variance
        free = [k & ~e for k, e in zip(known, exact, strict=True)]
        levels.append(LevelPrecision(own, exact, free, [~k for k in known]))
    return levels[::-1]


def subtrees(hierarchy: Hierarchy, levels: Sequence[LevelPrecision]) -> list[LevelSubtrees]:
    """The pass up, root first in the result."""
    leaf = levels[-1]
    precision = [_within(own, free) for own, free in zip(leaf.own, leaf.free, strict=True)]
    covariance = [inverse(j, free) for j, free in zip(precision, leaf.free, strict=True)]
    out = [
        LevelSubtrees(np.zeros(hierarchy.sizes[-1], dtype=np.int64), covariance, precision, None)
    ]
    for level in reversed(range(hierarchy.n_levels - 1)):
        below, here = out[-1], levels[level]
        start = hierarchy.child_start[level]
        class_of, examples = _classes(start, below.class_of)
        members = np.concatenate([below.class_of[start[i] : start[i + 1]] for i in examples])
        firsts = np.concatenate([[0], np.cumsum(np.diff(start)[examples])[:-1]])
        precision, covariance, from_children = [], [], []
        for i, free in enumerate(here.free):
            total = np.add.reduceat(below.covariance[i][members], firsts, axis=0)
            from_children.append(inverse(total, levels[level + 1].free[i]))
            precision.append(_within(here.own[i] + from_children[i], free))
            covariance.append(inverse(precision[i], free))
        out.append(LevelSubtrees(class_of, covariance, precision, from_children))
    return out[::-1]


def finals(
    hierarchy: Hierarchy, levels: Sequence[LevelPrecision], up: Sequence[LevelSubtrees]
) -> list[LevelFinal]:
    """The pass down."""
    unknown = [marks[np.newaxis] for marks in levels[0].unknown]
    out = [LevelFinal(np.zeros(1, dtype=np.int64), up[0].covariance, unknown)]
    for level in range(1, hierarchy.n_levels):
        above, parents = out[-1], hierarchy.parents(level)
        own, over = up[level], up[level - 1]
        assert over.children_precision is not None
        is_only = np.diff(hierarchy.child_start[level - 1])[parents] == 1
        key = (above.class_of[parents] * (own.class_of.max() + 1) + own.class_of) * 2 + is_only
        _, examples, class_of = np.unique(key, return_index=True, return_inverse=True)
        parent = parents[examples]
        covariance, unknown = [], []
        for i, (p, j) in enumerate(zip(own.covariance, over.children_precision, strict=True)):
            p_c, j_s = p[own.class_of[examples]], j[over.class_of[parent]]
            gain = p_c @ j_s
            k_p = above.covariance[i][above.class_of[parent]]
            k_c = p_c - gain @ p_c + gain @ k_p @ gain.transpose(0, 2, 1)
            lone = is_only[examples]
            k_c[lone] = k_p[lone]
            covariance.append(k_c)
            marks = np.repeat(levels[level].unknown[i][np.newaxis], examples.size, axis=0)
            marks[lone] = above.unknown[i][above.class_of[parent[lone]]]
            unknown.append(marks)
        out.append(LevelFinal(class_of, covariance, unknown))
    return out


def child_gains(
    hierarchy: Hierarchy, up: Sequence[LevelSubtrees], level: int
) -> tuple[Ints, Blocks]:
    """Classes of the nodes of a level, and P_c J_S: the part of their parent's gap they close."""
    parents, own, over = hierarchy.parents(level), up[level], up[level - 1]
    assert over.children_precision is not None
    key = over.class_of[parents] * (own.class_of.max() + 1) + own.class_of
    _, examples, class_of = np.unique(key, return_index=True, return_inverse=True)
    own_class, parent_class = own.class_of[examples], over.class_of[parents[examples]]
    blocks = zip(own.covariance, over.children_precision, strict=True)
    return class_of, [p[own_class] @ j[parent_class] for p, j in blocks]


def query_variances(algebra: Algebra, final: LevelFinal, query: Query) -> Floats:
    """Variances of the query's answers: classes x query cells, infinite where undetermined."""
    out = algebra.variances(query, final.covariance)
    for inside, unknown in zip(algebra.support(query), final.unknown, strict=True):
        out[(unknown & inside).any(axis=1)] = inf
    return out


@dataclass(frozen=True, slots=True, eq=False)
class TreeCovariances:
    """All covariances of a tree, before any data."""

    algebra: Algebra
    queries: dict[str, Query]
    measured: Measured
    is_nested: bool
    levels: list[LevelPrecision]
    up: list[LevelSubtrees]

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        shape: Sequence[int],
        queries: Mapping[str, Query],
        measured: Measured,
    ) -> TreeCovariances:
        """`queries` holds all that are measured on some level, or asked for."""
        algebra = Algebra.of(shape, list(queries.values()))
        is_nested = algebra.is_nested(queries.values())
        if not is_nested:
            measured = _less_apart(measured)
        levels = level_precisions(algebra, queries, measured)
        up = subtrees(hierarchy, levels)
        return cls(algebra, dict(queries), measured, is_nested, levels, up)


def _less_apart(measured: Measured) -> Measured:
    noisy = [v for level in measured for v in level.values() if 0 < v < inf]
    least = LEAST_RATIO * max(noisy, default=0.0)
    return [
        {name: v if v == 0 else max(v, least) for name, v in level.items()} for level in measured
    ]


def _classes(start: Ints, below: Ints) -> tuple[Ints, Ints]:
    """Nodes with the same multiset of children's classes, and one example of each."""
    found: dict[bytes, int] = {}
    examples = []
    class_of = np.empty(start.size - 1, dtype=np.int64)
    for node in range(start.size - 1):
        key = np.sort(below[start[node] : start[node + 1]]).tobytes()
        if key not in found:
            found[key] = len(examples)
            examples.append(node)
        class_of[node] = found[key]
    return class_of, np.array(examples, dtype=np.int64)


def _within(blocks: Floats, free: Marks) -> Floats:
    return np.where(free[:, np.newaxis] & free, blocks, 0.0)


def inverse(blocks: Floats, free: Marks) -> Floats:
    """The inverse on the free coordinates, 0 elsewhere.

    Coordinates are first scaled to a diagonal of ones: precisions of queries may differ by many
    orders of magnitude, and the scaled matrix is far better conditioned.
    """
    if blocks.shape[-1] == 1:
        return 1 / blocks if free.all() else np.zeros_like(blocks)
    out = np.zeros_like(blocks)
    if free.any():
        at = np.flatnonzero(free)
        inside = blocks[:, at[:, np.newaxis], at]
        root = np.sqrt(np.diagonal(inside, axis1=1, axis2=2))
        scale = root[:, :, np.newaxis] * root[:, np.newaxis]
        try:
            out[:, at[:, np.newaxis], at] = np.linalg.inv(inside / scale) / scale
        except np.linalg.LinAlgError:
            raise StructureError(
                "Some recodes of an attribute are not nested, and the measurements do not tell "
                "their groups apart. Measure the attribute itself too."
            ) from None
    return out
