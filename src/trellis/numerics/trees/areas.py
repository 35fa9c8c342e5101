r"""Areas of interest on a tree, all entities of a category at once.

Only pairs (node, entity) of a node that holds a leaf of the entity are kept, level by level from
the leaves up. A leaf is in at most one entity of a category, so there are at most as many pairs as
leaves.

**Distance.** c is the least number of nodes that must be added and subtracted to form the part of
the entity below a node, c' the same for its complement. With A = sum c and B = sum c' over the
children (a child without a leaf of the entity has c = 0, c' = 1),

    c = min(A, 1 + B),    c' = min(B, 1 + A)          (a leaf inside: A = 1, B = 0).

The distance of the entity is c of the root.

**Variance.** On the tree of `trellis.numerics.trees.gls`, the estimate of the entity's part below a
node from the node's subtree is U = beta u + R, with R uncorrelated with u and of variance r:

    beta = sum_c beta_c v_c / V,    r = sum_c r_c + sum_c (beta_c - beta)^2 v_c

(a leaf inside: beta = 1, r = 0). The final estimate of the entity has the variance
r + beta^2 v of the root. A node's own measurement changes neither beta nor r, only v, and every
term is positive. If one child has v = infinity then beta is that child's.

Reference for the distance: Cumings-Menon et al., arXiv:2203.16654, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numba import njit

from trellis.errors import StructureError
from trellis.model.arrays import Floats, Ints, ShortInts
from trellis.model.trees.areas import Category, same_leaves
from trellis.model.trees.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Entities present in the nodes of one level: those of node i are `start[i] : start[i + 1]`.

    `inside` and `outside` are the sums A and B; `above` is the pair of the same entity in the
    parent.
    """

    start: Ints
    entity: ShortInts
    inside: ShortInts
    outside: ShortInts
    above: Ints

    def distance(self) -> ShortInts:
        return np.minimum(self.inside, 1 + self.outside)


def pairs_up(hierarchy: Hierarchy, categories: Sequence[Category]) -> Iterator[Pairs]:
    """The pairs of every level, from the leaves to the root; entities are numbered through."""
    pairs, n_entities = _leaf_pairs(hierarchy, categories), sum(c.size for c in categories)
    for level in reversed(range(hierarchy.n_levels - 1)):
        start, n_pairs = hierarchy.child_start[level], pairs.entity.size
        entity, inside, outside = (np.empty(n_pairs, np.int32) for _ in range(3))
        above = np.empty(start.size, np.int64)
        used = _distances_up(
            start, pairs.start, pairs.entity, pairs.inside, pairs.outside, pairs.above, n_entities,
            above, entity, inside, outside,
        )  # fmt: skip
        yield pairs
        kept = [array[:used].copy() for array in (entity, inside, outside)]
        pairs = Pairs(above, kept[0], kept[1], kept[2], np.empty(used, np.int64))
    yield pairs


def entity_distances(hierarchy: Hierarchy, category: Category) -> ShortInts:
    """The off-spine distance of every entity."""
    *_, root = pairs_up(hierarchy, [category])
    out = np.empty(category.size, np.int32)
    out[root.entity] = root.distance()
    return out


def entity_variances(hierarchy: Hierarchy, category: Category, subtree: Sequence[Floats]) -> Floats:
    """The variance of every entity's estimate; `subtree` comes from `tree_gls.variances_up`."""
    leaves = _leaf_pairs(hierarchy, [category])
    start, entity = leaves.start, leaves.entity
    beta, spread = np.ones(entity.size), np.zeros(entity.size)
    for level in reversed(range(hierarchy.n_levels - 1)):
        children, v = hierarchy.child_start[level], subtree[level + 1]
        above = np.empty(children.size, np.int64)
        new_entity = np.empty(entity.size, np.int32)
        new_beta, new_spread = np.empty(entity.size), np.empty(entity.size)
        used = _variances_up(
            children, v, start, entity, beta, spread, category.size,
            above, new_entity, new_beta, new_spread,
        )  # fmt: skip
        if used < 0:
            name, code = hierarchy.level_names[level], str(hierarchy.codes(level)[-1 - used])
            raise StructureError(
                f"Two or more areas below {code!r} of level {name!r} are not measured, nor "
                "determined by areas below them, so they cannot be told apart."
            )
        start, entity = above, new_entity[:used].copy()
        beta, spread = new_beta[:used].copy(), new_spread[:used].copy()
    out = np.empty(category.size)
    out[entity] = spread + beta**2 * subtree[0][0]
    return out


def _leaf_pairs(hierarchy: Hierarchy, categories: Sequence[Category]) -> Pairs:
    member = np.stack([same_leaves(c, hierarchy).member for c in categories], axis=1)
    inside = member >= 0
    first = np.cumsum([0] + [c.size for c in categories[:-1]], dtype=np.int32)
    start = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
    entity = (member + first)[inside]
    ones = np.ones(entity.size, np.int32)
    return Pairs(start, entity, ones, np.zeros_like(ones), np.empty(entity.size, np.int64))


@njit(nogil=True, cache=True)
def _distances_up(
    children: Ints,
    start: Ints,
    entity: ShortInts,
    inside: ShortInts,
    outside: ShortInts,
    above: Ints,
    n_entities: int,
    new_start: Ints,
    new_entity: ShortInts,
    new_inside: ShortInts,
    new_outside: ShortInts,
) -> int:
    """Fill the pairs of the level above, and where each pair went; return how many there are."""
    seen = np.full(n_entities, -1, np.int64)
    slot = np.empty(n_entities, np.int64)
    used = 0
    new_start[0] = 0
    for parent in range(children.size - 1):
        n_children = children[parent + 1] - children[parent]
        for j in range(start[children[parent]], start[children[parent + 1]]):
            e = entity[j]
            if seen[e] != parent:
                seen[e] = parent
                slot[e] = used
                new_entity[used] = e
                new_inside[used] = 0
                new_outside[used] = n_children  # as if no child held the entity
                used += 1
            s = slot[e]
            above[j] = s
            new_inside[s] += min(inside[j], 1 + outside[j])
            new_outside[s] += min(outside[j], 1 + inside[j]) - 1
        new_start[parent + 1] = used
    return used


@njit(nogil=True, cache=True)
def _variances_up(
    children: Ints,
    v: Floats,
    start: Ints,
    entity: ShortInts,
    beta: Floats,
    spread: Floats,
    n_entities: int,
    new_start: Ints,
    new_entity: ShortInts,
    new_beta: Floats,
    new_spread: Floats,
) -> int:
    """Fill the pairs of the level above; return how many there are, or -1 - a faulty parent."""
    seen = np.full(n_entities, -1, np.int64)
    slot = np.empty(n_entities, np.int64)
    held = np.empty(n_entities)  # variance of the children that hold the entity
    used = 0
    new_start[0] = 0
    for parent in range(children.size - 1):
        first, total, widest = used, 0.0, -1
        for child in range(children[parent], children[parent + 1]):
            if v[child] == inf:
                if widest >= 0:
                    return -1 - parent
                widest = child
            else:
                total += v[child]
        for child in range(children[parent], children[parent + 1]):
            for j in range(start[child], start[child + 1]):
                e = entity[j]
                if seen[e] != parent:
                    seen[e] = parent
                    slot[e] = used
                    held[e] = 0.0
                    new_entity[used] = e
                    new_beta[used] = 0.0
                    new_spread[used] = 0.0
                    used += 1
                s = slot[e]
                if child == widest:
                    new_beta[s] += beta[j]
                elif widest < 0:
                    new_beta[s] += beta[j] * v[child]
                if child != widest:
                    held[e] += v[child]
        if widest < 0:
            for s in range(first, used):
                new_beta[s] = new_beta[s] / total if total > 0 else 0.0
        for child in range(children[parent], children[parent + 1]):
            for j in range(start[child], start[child + 1]):
                s = slot[entity[j]]
                new_spread[s] += spread[j]
                if child != widest:
                    new_spread[s] += (beta[j] - new_beta[s]) ** 2 * v[child]
        for s in range(first, used):
            # Children without a leaf of the entity have beta 0.
            rest = total - held[new_entity[s]]
            if rest > 1e-12 * total:
                new_spread[s] += new_beta[s] ** 2 * rest
        new_start[parent + 1] = used
    return used
