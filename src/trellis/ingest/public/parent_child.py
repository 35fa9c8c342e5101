"""From rows of (child, parent) to paths from the root."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.errors import InputError
from trellis.model.trees.hierarchy import MOST_SHOWN


def paths_from_parents(
    children: Sequence[str | None], parents: Sequence[str | None]
) -> list[tuple[str, ...]]:
    """One path per leaf. Cycles, repeated areas and empty codes are errors."""
    parent_of: dict[str, str | None] = {}
    faults = []
    for child, parent in zip(children, parents, strict=True):
        if not child:
            faults.append("A row of the parent-child file has no child code.")
            continue
        if child in parent_of:
            same = parent_of[child] == (parent or None)
            trouble = "is listed twice" if same else "has two parents"
            faults.append(f"Area {child!r} {trouble}. List each area once.")
        parent_of[child] = parent or None
    if faults:
        raise InputError(*list(dict.fromkeys(faults))[:MOST_SHOWN])
    # A parent without a row of its own is a root.
    for parent in [p for p in parent_of.values() if p is not None and p not in parent_of]:
        parent_of[parent] = None

    paths: dict[str, tuple[str, ...]] = {}
    for area in parent_of:
        _trace(area, parent_of, paths)
    inner = set(parent_of.values())
    return [path for area, path in paths.items() if area not in inner]


def _trace(area: str, parent_of: dict[str, str | None], paths: dict[str, tuple[str, ...]]) -> None:
    """Fill in the paths of an area and of all above it."""
    pending: list[str] = []
    on_the_way: set[str] = set()
    node: str | None = area
    while node is not None and node not in paths:
        if node in on_the_way:
            raise InputError(f"Area {node!r} is its own ancestor: the parents form a cycle.")
        on_the_way.add(node)
        pending.append(node)
        node = parent_of[node]
    path = () if node is None else paths[node]
    for node in reversed(pending):
        path = (*path, node)
        paths[node] = path
