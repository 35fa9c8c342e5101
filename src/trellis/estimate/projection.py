"""Integer projection of families onto their parents' totals, with checked input."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import StructureError
from trellis.execution.executor import in_threads, map_families
from trellis.execution.tasks import Fill
from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.projection.any_weights import (
    GREATEST_WEIGHT,
    LEAST_WEIGHT,
    REAL_LIMIT,
    UNKNOWN_WEIGHT,
    project_weighted,
)
from trellis.numerics.projection.equal_weights import WHOLE_LIMIT, project_whole
from trellis.numerics.ties import tie_key


def project_l2(
    x: ArrayLike, total: float, weights: ArrayLike | None = None, *, tie_seed: int = 0
) -> Ints:
    """Whole numbers y >= 0 with sum `total` that minimise sum_i weights_i (y_i - x_i)^2.

    The minimum is exact. A weight of infinity fixes a child at its whole, non-negative x; children
    of weight 0 take what the others leave. Ties are broken at random from the published integer
    `tie_seed`, the same way each time.
    """
    values = numbers("x", x)
    return project_l2_families(values, [0, values.size], [total], weights, tie_seed=tie_seed)


def project_l2_families(
    x: ArrayLike,
    start: ArrayLike,
    totals: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    tie_seed: int = 0,
    first_index: int = 0,
    workers: int | None = None,
) -> Ints:
    """`project_l2` for many families: family f holds the children `start[f] : start[f + 1]`.

    `first_index` is the index of `x[0]` in the whole tree: a slice with its own first index gives
    what it gives within the whole, and levels that share a seed break ties independently.
    """
    values = numbers("x", x)
    pointer = row_pointer(start, values.size)
    sums = whole(numbers("totals", totals), "Totals")
    key = tie_key(tie_seed)
    checked_weights = None if weights is None else _weights(weights, values.size)
    check_totals(sums, pointer, values, checked_weights)

    out = np.empty(values.size, dtype=np.int64)
    if checked_weights is None and (as_int := _as_whole(values)) is not None:
        kernel = partial(project_whole, as_int, pointer, sums, key, first_index)
    else:
        if checked_weights is None:
            checked_weights = np.ones(values.size)
        reals = _within_real_limit(values, sums)
        kernel = partial(project_weighted, reals, checked_weights, pointer, sums, key, first_index)
    with in_threads(workers):
        map_families(kernel, pointer, [Fill(out, pointer)])
    return out


# -- checks ---------------------------------------------------------------------------------------


def numbers(name: str, given: ArrayLike) -> NDArray[Any]:
    """A flat array of int64 or finite float64."""
    values = _flat(name, given)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise StructureError(
                f"{name} holds NaN or infinity. Where nothing is known give 0, and weight 0."
            )
        return np.ascontiguousarray(values, dtype=np.float64)
    if np.any((values > WHOLE_LIMIT) | (values < -WHOLE_LIMIT)):
        raise StructureError(f"{name} holds a whole number beyond 2^62.")
    return np.ascontiguousarray(values, dtype=np.int64)


def _flat(name: str, given: ArrayLike) -> NDArray[Any]:
    try:
        values = np.asarray(given)
    except ValueError:  # lists of unequal length
        values = np.empty((0, 0))
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise StructureError(f"{name} must be a flat array of numbers within 64 bits.")
    return values


def _as_whole(values: NDArray[Any]) -> Ints | None:
    """The same numbers as int64, or None if that would change them."""
    if values.dtype == np.int64:
        return values
    if np.any((values != np.rint(values)) | (np.abs(values) > WHOLE_LIMIT)):
        return None
    return values.astype(np.int64)


def whole(values: NDArray[Any], name: str) -> Ints:
    if (whole := _as_whole(values)) is None:
        raise StructureError(f"{name} must be whole numbers. Round them first.")
    return whole


def row_pointer(start: ArrayLike, n_children: int) -> Ints:
    pointer = whole(numbers("start", start), "Entries of start")
    if not pointer.size or pointer[0] != 0 or pointer[-1] != n_children:
        raise StructureError(f"start must begin with 0 and end with {n_children}, the size of x.")
    if np.any(decreasing := np.diff(pointer) < 0):
        raise StructureError(f"start decreases at family {int(np.argmax(decreasing))}.")
    return pointer


def _weights(given: ArrayLike, n_children: int) -> Floats | None:
    """Weights for the kernel, or None if they are all equal and so have no effect."""
    weights = np.ascontiguousarray(_flat("weights", given), dtype=np.float64)
    if weights.shape != (n_children,):
        raise StructureError(f"weights have shape {weights.shape}; give one for each x.")
    in_range = (weights >= LEAST_WEIGHT) & (weights <= GREATEST_WEIGHT)
    if not np.all(in_range | (weights == 0) | (weights == inf)):
        raise StructureError(
            "Weights must be 0 (unknown), infinity (exact) or within "
            f"{LEAST_WEIGHT:g} .. {GREATEST_WEIGHT:g}."
        )
    if weights.size and weights.min() == weights.max() < inf:
        return None
    return np.maximum(weights, UNKNOWN_WEIGHT)


def check_totals(totals: Ints, start: Ints, x: NDArray[Any], weights: Floats | None) -> None:
    n_children = np.diff(start)
    if totals.shape != n_children.shape:
        raise StructureError(f"{totals.size} totals for {n_children.size} families.")
    _refuse(totals < 0, "has a negative total; counts cannot add up to that.")
    _refuse(
        totals >= WHOLE_LIMIT // (n_children + 1),
        "has a total too large for its number of children: their product exceeds 2^62.",
    )
    n_free, fixed_sum = n_children, np.zeros_like(totals)
    if weights is not None and np.any(fixed := weights == inf):
        family = np.repeat(np.arange(n_children.size), n_children)
        refused = fixed & ((x < 0) | (x != np.rint(x)))
        _refuse_children(refused, family, "fixes a child at a negative or fractional value.")
        refused = fixed & (x > totals[family])
        _refuse_children(refused, family, "fixes children at more than its total.")
        n_free = n_children - np.bincount(family[fixed], minlength=n_children.size)
        np.add.at(fixed_sum, family[fixed], x[fixed].astype(np.int64))
    _refuse(fixed_sum > totals, "fixes children at more than its total.")
    _refuse(
        (n_free == 0) & (fixed_sum < totals),
        "has a positive total and no child to take it. Free a child or lower the total.",
    )


def _refuse(faulty: Marks, reason: str) -> None:
    if faulty.any():
        raise StructureError(f"Family {int(np.argmax(faulty))} {reason}")


def _refuse_children(faulty: Marks, family: Ints, reason: str) -> None:
    if faulty.any():
        raise StructureError(f"Family {int(family[np.argmax(faulty)])} {reason}")


def _within_real_limit(values: NDArray[Any], totals: Ints) -> Floats:
    if np.any(np.abs(values) > REAL_LIMIT) or np.any(totals > REAL_LIMIT):
        raise StructureError("With weights or fractions, x and totals must lie within 2^50.")
    return values.astype(np.float64)
