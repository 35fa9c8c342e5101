"""Which totals are published exactly, and what that leaves to protect."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.errors import SpecError
from trellis.privacy.neighbours import Neighbours


def exact_levels(
    levels: Sequence[str],
    listed: Sequence[str],
    neighbours: Neighbours,
    n_cells: int,
    *,
    histogram: bool = False,
) -> tuple[str, ...]:
    """The levels whose totals are exact, root first.

    Under `replace` the number of records never changes, so the root's total is not protected,
    listed or not. Exact totals of a level add up to exact totals of every level above it.
    """
    for name in listed:
        if name not in levels:
            raise SpecError(
                f"unprotected.totals names level {name!r}; the hierarchy has {', '.join(levels)}."
            )
    if neighbours is Neighbours.ADD_REMOVE:
        if listed:
            raise SpecError(
                f"unprotected.totals: exact totals of level {listed[0]!r} would show whether a "
                "record was added or removed. Use neighbours: replace, or protect all totals."
            )
        return ()
    deepest = max((levels.index(name) for name in listed), default=0)
    if deepest and n_cells > 1 and not histogram:
        raise SpecError(
            f"unprotected.totals: with several cells, only the total of the root level "
            f"{levels[0]!r} can be exact. List that one, or release a single cell."
        )
    if deepest == len(levels) - 1 and n_cells == 1:
        raise SpecError(
            "Every total would be published exactly, and nothing is left to protect. "
            "Take the last level out of unprotected.totals, or add a level below it."
        )
    return tuple(levels[: deepest + 1])
