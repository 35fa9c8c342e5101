"""Bounds carried up a hierarchy, one number at a time, until nothing changes anywhere."""

from __future__ import annotations

from itertools import product

import numpy as np

INF = float("inf")


def slow_carried_bounds(hierarchy, queries, stated, impossible):
    """By level, query, area and cell, a list [least, greatest]."""
    levels = []
    for level in reversed(range(hierarchy.n_levels)):
        boxes = {}
        for name in _present(hierarchy, stated, level):
            query = queries[name]
            boxes[name] = [
                [[0.0, _most(query, k, impossible)] for k in range(query.n_cells)]
                for _ in range(hierarchy.size(level))
            ]
        if levels:
            _from_children(boxes, levels[-1], hierarchy, level)
            for group in stated[level + 1]:
                if group.group_of is not None:
                    below = levels[-1].get(group.query)
                    _from_groups(boxes, below, group, queries, hierarchy, level, impossible)
        for single in stated[level]:
            if single.group_of is None:
                for area, k in np.ndindex(single.range.lower.shape):
                    _narrow(boxes[single.query][area][k], single.range, (area, k))
        while _between(boxes, queries):
            pass
        levels.append(boxes)
    return levels[::-1]


def _present(hierarchy, stated, level):
    """Queries of which something is stated here or, also of groups, below."""
    names = [s.query for s in stated[level] if s.group_of is None]
    for below in range(level + 1, hierarchy.n_levels):
        names += [s.query for s in stated[below]]
    return dict.fromkeys(names)


def _most(query, k, impossible):
    return 0.0 if impossible[query.cell_of == k].all() else INF


def _narrow(box, stated, where):
    box[0] = max(box[0], stated.lower[where])
    box[1] = min(box[1], stated.upper[where])


def _from_children(boxes, below, hierarchy, level):
    for name, children in below.items():
        for area in range(hierarchy.size(level)):
            first, last = hierarchy.child_start[level][area : area + 2]
            for k, box in enumerate(boxes[name][area]):
                box[0] = max(box[0], sum(children[c][k][0] for c in range(first, last)))
                box[1] = min(box[1], sum(children[c][k][1] for c in range(first, last)))


def _from_groups(boxes, below, stated, queries, hierarchy, level, impossible):
    query = queries[stated.query]
    for area, k in product(range(hierarchy.size(level)), range(query.n_cells)):
        first, last = hierarchy.child_start[level][area : area + 2]
        parts = {}
        for child in range(first, last):
            group = stated.group_of[child]
            own = below[child][k] if below else [0.0, _most(query, k, impossible)]
            part = parts.setdefault(("alone", child) if group < 0 else group, [0.0, 0.0])
            part[0] += own[0]
            part[1] += own[1]
        for group, part in parts.items():
            if not isinstance(group, tuple):
                _narrow(part, stated.range, (group, k))
        box = boxes[stated.query][area][k]
        box[0] = max(box[0], sum(part[0] for part in parts.values()))
        box[1] = min(box[1], sum(part[1] for part in parts.values()))


def _between(boxes, queries) -> bool:
    """One round over all pairs of queries; whether anything changed."""
    changed = False
    for fine, coarse in product(boxes, boxes):
        inside = [
            set(queries[fine].cell_of[queries[coarse].cell_of == k])
            for k in range(queries[coarse].n_cells)
        ]
        if fine == coarse or sum(map(len, inside)) != queries[fine].n_cells:
            continue
        for area, k in product(range(len(boxes[fine])), range(len(inside))):
            whole, parts = boxes[coarse][area][k], [boxes[fine][area][i] for i in inside[k]]
            before = [*whole, *(side for part in parts for side in part)]
            whole[0] = max(whole[0], sum(part[0] for part in parts))
            whole[1] = min(whole[1], sum(part[1] for part in parts))
            for part in parts:
                others = [p for p in parts if p is not part]
                part[0] = max(part[0], whole[0] - sum(p[1] for p in others))
                part[1] = min(part[1], whole[1] - sum(p[0] for p in others))
            changed |= before != [*whole, *(side for part in parts for side in part)]
    return changed
