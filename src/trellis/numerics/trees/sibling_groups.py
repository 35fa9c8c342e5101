"""Merges siblings into groups, as long as areas of interest do not get further from the tree.

For every parent, groups begin as single children. Two groups are merged when the group is not too
large and the distances of all entities, sorted from the largest down, do not get worse in
lexicographic order. A merge changes the sums of one parent only, and of the nodes above it for the
entities whose part below that parent changed: these alone are compared, which decides the same,
because what two sorted lists have in common cancels.

Reference: Cumings-Menon et al., arXiv:2203.16654, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from trellis.model.arrays import Ints, ShortInts
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.trees.areas import pairs_up

ROOT = -1
"""In place of a pair above: there is none."""


def merge_siblings(
    hierarchy: Hierarchy, level: int, categories: Sequence[Category], limits: Ints
) -> Ints:
    """For every node of `level`, the first node of the group it comes into.

    `limits` holds the most members of a group, for each parent on the level above.
    """
    levels = list(pairs_up(hierarchy, categories))[::-1]  # root first
    first = np.cumsum([0] + [p.entity.size for p in levels[:level]])
    inside = np.concatenate([p.inside for p in levels[:level]])
    outside = np.concatenate([p.outside for p in levels[:level]])
    above = np.concatenate(
        [np.full(levels[0].entity.size, ROOT)]
        + [p.above + first[i] for i, p in enumerate(levels[1:level])]
    )
    members, parents = levels[level], levels[level - 1]
    group = np.arange(hierarchy.size(level))
    size = np.ones(group.size, np.int64)
    parent_pairs = parents.start + first[level - 1]
    sums_in = members.distance()
    sums_out = np.minimum(members.outside, 1 + members.inside)
    while _merge_all(
        hierarchy.child_start[level - 1], limits, group, size,
        members.start, members.above + first[level - 1], sums_in, sums_out,
        parent_pairs, inside, outside, above,
    ):  # fmt: skip
        pass
    return group


@njit(nogil=True, cache=True)
def _merge_all(
    children: Ints,
    limits: Ints,
    group: Ints,
    size: Ints,
    start: Ints,
    pair_above: Ints,
    c: ShortInts,
    c_not: ShortInts,
    parent_start: Ints,
    inside: ShortInts,
    outside: ShortInts,
    above: Ints,
) -> bool:
    """One round over all pairs of groups; whether any were merged."""
    changed = False
    for parent in range(children.size - 1):
        lo, hi = children[parent], children[parent + 1]
        if hi - lo < 2:
            continue
        first, n_entities = parent_start[parent], parent_start[parent + 1] - parent_start[parent]
        # Sums over the members of each group; without a leaf of the entity they are 0 and 1 each.
        sum_in = np.zeros((hi - lo, n_entities), np.int32)
        sum_out = np.zeros((hi - lo, n_entities), np.int32)
        for node in range(lo, hi):
            sum_out[group[node] - lo, :] += 1
            for j in range(start[node], start[node + 1]):
                e = pair_above[j] - first
                sum_in[group[node] - lo, e] += c[j]
                sum_out[group[node] - lo, e] += c_not[j] - 1
        old, new = np.empty(n_entities, np.int64), np.empty(n_entities, np.int64)
        for left in range(lo, hi):
            if group[left] != left:
                continue
            for right in range(left + 1, hi):
                if group[right] != right or size[left] + size[right] > limits[parent]:
                    continue
                a, b = left - lo, right - lo
                if not _is_no_worse(
                    sum_in[a], sum_out[a], sum_in[b], sum_out[b], first, inside, outside, above,
                    old, new,
                ):  # fmt: skip
                    continue
                for e in range(n_entities):
                    d_in, d_out = _change(sum_in[a, e], sum_out[a, e], sum_in[b, e], sum_out[b, e])
                    _walk(first + e, d_in, d_out, inside, outside, above, True)
                    sum_in[a, e] += sum_in[b, e]
                    sum_out[a, e] += sum_out[b, e]
                size[left] += size[right]
                for node in range(right, hi):
                    if group[node] == right:
                        group[node] = left
                changed = True
    return changed


@njit(nogil=True, cache=True)
def _change(a_in: int, a_out: int, b_in: int, b_out: int) -> tuple[int, int]:
    """By how much merging two groups changes the parent's two sums for an entity."""
    d_in = min(a_in + b_in, 1 + a_out + b_out) - min(a_in, 1 + a_out) - min(b_in, 1 + b_out)
    d_out = min(a_out + b_out, 1 + a_in + b_in) - min(a_out, 1 + a_in) - min(b_out, 1 + b_in)
    return d_in, d_out


@njit(nogil=True, cache=True)
def _walk(
    pair: int, d_in: int, d_out: int, inside: ShortInts, outside: ShortInts, above: Ints, keep: bool
) -> tuple[int, int]:
    """Carry a change of a node's sums to the root; the entity's distance before and after."""
    while True:
        i, o = inside[pair], outside[pair]
        before, after = min(i, 1 + o), min(i + d_in, 1 + o + d_out)
        if keep:
            inside[pair] = i + d_in
            outside[pair] = o + d_out
        if above[pair] == ROOT:
            return before, after
        d_in, d_out = after - before, min(o + d_out, 1 + i + d_in) - min(o, 1 + i)
        if d_in == 0 and d_out == 0:
            return 0, 0
        pair = above[pair]


@njit(nogil=True, cache=True)
def _is_no_worse(
    a_in: ShortInts,
    a_out: ShortInts,
    b_in: ShortInts,
    b_out: ShortInts,
    first: int,
    inside: ShortInts,
    outside: ShortInts,
    above: Ints,
    old: Ints,
    new: Ints,
) -> bool:
    used = 0
    for e in range(a_in.size):
        d_in, d_out = _change(a_in[e], a_out[e], b_in[e], b_out[e])
        if d_in == 0 and d_out == 0:
            continue
        before, after = _walk(first + e, d_in, d_out, inside, outside, above, False)
        if before != after:
            old[used], new[used] = before, after
            used += 1
    if used == 0:
        return True
    was, will = np.sort(old[:used]), np.sort(new[:used])
    for i in range(used - 1, -1, -1):
        if was[i] != will[i]:
            return will[i] < was[i]
    return True
