"""Checks of what the group-size functions are given; each complaint is one line."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import gcd, isfinite, lcm
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.numerics.group_sizes.unit_prices import PRICE_LIMIT, IntArray

Weight = int | float | Fraction | Decimal
"""How much a level counts in the sum of squares; 0 if the level is not measured."""

LARGEST_COUNT = 2**50
COARSEST_WEIGHT = 2**10
"""Weights that must be rounded keep at least this many steps."""


def noisy_tables(hierarchy: Hierarchy, noisy: Sequence[ArrayLike]) -> list[IntArray]:
    """One array of whole numbers per level, nodes x sizes, equally many sizes."""
    if len(noisy) != hierarchy.n_levels:
        raise StructureError(f"{len(noisy)} tables for {hierarchy.n_levels} levels. Give one each.")
    tables = [_array(f"The table of level {n!r}", t) for n, t in _named(hierarchy, noisy)]
    n_sizes = tables[0].shape[1:2]
    for level, (name, table) in enumerate(_named(hierarchy, tables)):
        shape = (hierarchy.size(level), *n_sizes)
        if table.ndim != 2 or table.shape != shape:
            raise StructureError(
                f"The table of level {name!r} has shape {table.shape}; it must have a row for each "
                f"of {hierarchy.size(level)} areas, and all levels the same sizes as columns."
            )
    return [_whole(f"The table of level {n!r}", t) for n, t in _named(hierarchy, tables)]


def group_counts(hierarchy: Hierarchy, groups: ArrayLike) -> IntArray:
    """The public number of groups in each leaf."""
    n_leaves = hierarchy.size(hierarchy.leaf_level)
    counts = _array("The numbers of groups", groups)
    if counts.shape != (n_leaves,):
        raise StructureError(
            f"There must be one number of groups for each of {n_leaves} areas of level "
            f"{hierarchy.level_names[-1]!r}, from the public register."
        )
    counts = _whole("The numbers of groups", counts)
    if counts.size and counts.min() < 0:
        raise StructureError("A number of groups is negative. Take it from the public register.")
    return counts


def total_groups(total: Any) -> int:
    is_number = isinstance(total, int | float | np.number) and not isinstance(total, bool)
    if not is_number or not 0 <= total <= LARGEST_COUNT or total != int(total):
        raise StructureError(
            "The total number of groups must be a whole number from 0 to 2^50. "
            "Take it from the public register."
        )
    return int(total)


def level_weights(hierarchy: Hierarchy, weights: Sequence[Weight] | None) -> list[Fraction]:
    """Exact weights; a float stands for the decimal it is written as."""
    names = hierarchy.level_names
    if weights is None:
        return [Fraction(1)] * len(names)
    if len(weights) != len(names):
        raise StructureError(f"{len(weights)} weights for {len(names)} levels. Give one each.")
    exact = [_exact_weight(name, w) for name, w in zip(names, weights, strict=True)]
    if exact[-1] == 0:
        raise StructureError(
            f"Level {names[-1]!r} has weight 0, but what is not measured there cannot be told "
            "apart. Measure it, or end the hierarchy above."
        )
    return exact


def whole_weights(weights: Sequence[Fraction], tables: Sequence[IntArray], total: int) -> list[int]:
    """Whole numbers in the same ratios, small enough for exact prices in 64 bits.

    If the ratios need larger numbers than the counts leave room for, they are rounded to the
    finest grid that fits. The optimum is then exact for weights that differ by less than one part
    in `COARSEST_WEIGHT`; in practice by one in 2^25 or better.
    """
    span = 2 * total + 4
    for table in tables:
        span += 2 * max(-int(table.min()), int(table.max())) * 2
    denominator = reduce(lcm, (w.denominator for w in weights))
    whole = [int(w * denominator) for w in weights]
    common = reduce(gcd, whole)
    whole = [w // common for w in whole]
    room = PRICE_LIMIT // span
    if sum(whole) > room:
        largest = max(whole)
        steps = room // len(whole)
        whole = [-(-(2 * w * steps - largest) // (2 * largest)) for w in whole]  # half down
        if min(w for w, given in zip(whole, weights, strict=True) if given) < COARSEST_WEIGHT:
            raise StructureError(
                "Counts are too large, or weights differ too much, for exact 64-bit arithmetic. "
                "Give weights as ratios of small whole numbers."
            )
    return whole


# -- parts ----------------------------------------------------------------------------------------


def _named(hierarchy: Hierarchy, values: Sequence[Any]) -> Any:
    return zip(hierarchy.level_names, values, strict=True)


def _array(what: str, given: ArrayLike) -> NDArray[Any]:
    try:
        values = np.asarray(given)
    except ValueError:  # lists of unequal length
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "iuf":
        raise StructureError(f"{what} must be a full array of numbers.")
    return values


def _whole(what: str, values: NDArray[Any]) -> IntArray:
    if values.size:
        least, most = values.min(), values.max()
        if not (least >= -LARGEST_COUNT and most <= LARGEST_COUNT):  # also false for NaN
            raise StructureError(f"{what} holds NaN or a number beyond 2^50.")
        if values.dtype.kind == "f" and np.any(values != np.rint(values)):
            raise StructureError(f"{what} holds fractions; counts and their noise are whole.")
    return np.ascontiguousarray(values, dtype=np.int64)


def _exact_weight(level: str, weight: object) -> Fraction:
    exact = Fraction(-1)
    if isinstance(weight, Fraction | Integral) and not isinstance(weight, bool):
        exact = Fraction(int(weight.numerator), int(weight.denominator))
    elif isinstance(weight, Decimal) and weight.is_finite():
        exact = Fraction(weight)
    elif isinstance(weight, Real) and isfinite(weight):
        exact = Fraction(repr(float(weight)))
    if exact < 0:
        raise StructureError(f"The weight of level {level!r} must be a finite number >= 0.")
    return exact
