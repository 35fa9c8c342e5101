"""Chebyshev projection of families onto their parents' totals, with checked input."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.estimate.projection import check_totals, numbers, row_pointer, whole
from trellis.execution.executor import in_threads, map_families
from trellis.execution.tasks import Fill
from trellis.model.arrays import Ints
from trellis.numerics.projection.chebyshev import project_chebyshev_runs
from trellis.numerics.projection.equal_weights import WHOLE_LIMIT
from trellis.numerics.ties import tie_key

ORDERS = ("ascending", "descending")


def project_chebyshev(
    x: ArrayLike, total: float, order: str = "ascending", *, tie_seed: int = 0
) -> Ints:
    """Whole numbers y >= 0 with sum `total` that minimise max_i |y_i - x_i|, for whole x.

    Of the many minima, `ascending` takes from small values first, which leaves fewer false
    positives; `descending` from large ones, which leaves fewer false negatives. Ties are broken at
    random from the published integer `tie_seed`, the same way each time.
    """
    values = numbers("x", x)
    return project_chebyshev_families(values, [0, values.size], [total], order, tie_seed=tie_seed)


def project_chebyshev_families(
    x: ArrayLike,
    start: ArrayLike,
    totals: ArrayLike,
    order: str = "ascending",
    *,
    tie_seed: int = 0,
    first_index: int = 0,
    index: Ints | None = None,
    workers: int | None = None,
) -> Ints:
    """`project_chebyshev` for many families: family f holds the children `start[f] : start[f + 1]`.

    `first_index` is the index of `x[0]` in the whole level: a slice with its own first index gives
    what it gives within the whole. If children are left out between others, `index` gives that of
    each.
    """
    if order not in ORDERS:
        raise StructureError(f"order is {order!r}; it must be one of {', '.join(ORDERS)}.")
    values = whole(numbers("x", x), "Values x of the Chebyshev projection")
    pointer = row_pointer(start, values.size)
    sums = whole(numbers("totals", totals), "Totals")
    check_totals(sums, pointer, values, None)
    _check_range(values, pointer, sums)
    out = np.empty(values.size, dtype=np.int64)
    kernel = partial(
        project_chebyshev_runs, values, pointer, sums, order == "descending", tie_key(tie_seed),
        np.empty(0, np.int64) if index is None else index, first_index,
    )  # fmt: skip
    with in_threads(workers):
        map_families(kernel, pointer, [Fill(out, pointer)])
    return out


def _check_range(x: Ints, start: Ints, totals: Ints) -> None:
    """No sum within a family may leave int64."""
    widest = int(np.diff(start).max(initial=0))
    most = max(int(x.max(initial=0)), -int(x.min(initial=0)))
    if widest * most + int(totals.max(initial=0)) < WHOLE_LIMIT:
        return
    for family in range(totals.size):  # rare: look at each family by itself, in Python's integers
        values = x[start[family] : start[family + 1]].tolist()
        if sum(map(abs, values)) + int(totals[family]) >= WHOLE_LIMIT:
            raise StructureError(f"Family {family} has values whose sum exceeds 2^62.")
