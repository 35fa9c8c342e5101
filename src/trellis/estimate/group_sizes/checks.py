"""Checks of what the group-size functions are given; each complaint is one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from trellis.model.arrays import Ints
from trellis.model.plans.kinds.group_sizes import WIDEST_RATIO
from trellis.numerics.group_sizes.integer_optimum import extremes
from trellis.numerics.group_sizes.unit_prices import PRICE_LIMIT

Weight = int | float | Fraction | Decimal
"""How much a level counts in the sum of squares; 0 if the level is not measured."""

LARGEST_COUNT = 2**50
COARSEST_WEIGHT = 2**10
"""Weights that must be rounded keep at least this many steps."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTables:
    """Whole numbers per level, nodes x columns, root first, and the largest |value| of each."""

    tables: list[Ints]
    largest: list[int]

    @property
    def n_columns(self) -> int:
        return self.tables[0].shape[1]


def noisy_tables(hierarchy: Hierarchy, noisy: Sequence[ArrayLike]) -> NoisyTables:
    """One array of whole numbers per level, nodes x sizes, equally many sizes."""
    if len(noisy) != hierarchy.n_levels:
        raise StructureError(f"{len(noisy)} tables for {hierarchy.n_levels} levels. Give one each.")
    names = [f"The table of level {name!r}" for name in hierarchy.level_names]
    arrays = [_array(name, given) for name, given in zip(names, noisy, strict=True)]
    for level, (name, array) in enumerate(zip(names, arrays, strict=True)):
        shape = (hierarchy.size(level), *arrays[0].shape[1:2])
        if array.ndim != 2 or array.shape != shape:
            raise StructureError(
                f"{name} has shape {array.shape}; it must have a row for each of "
                f"{hierarchy.size(level)} areas, and all levels the same sizes as columns."
            )
    checked = [_whole(name, array) for name, array in zip(names, arrays, strict=True)]
    return NoisyTables([table for table, _ in checked], [largest for _, largest in checked])


def group_counts(hierarchy: Hierarchy, groups: ArrayLike) -> Ints:
    """The public number of groups in each leaf."""
    n_leaves = hierarchy.size(hierarchy.leaf_level)
    counts = _array("The numbers of groups", groups)
    if counts.shape != (n_leaves,):
        raise StructureError(
            f"There must be one number of groups for each of {n_leaves} areas of level "
            f"{hierarchy.level_names[-1]!r}, from the public register."
        )
    counts, _ = _whole("The numbers of groups", counts)
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
            f"Level {names[-1]!r} has weight 0, but without measurements its areas cannot be told "
            "apart. Measure it, or end the hierarchy above it."
        )
    if max(exact) > WIDEST_RATIO * min(weight for weight in exact if weight):
        raise StructureError(
            f"Weights differ too much: by more than {WIDEST_RATIO:.0e}. "
            "Give weight 0 to levels that do not count."
        )
    return exact


def whole_weights(weights: Sequence[Fraction], largest: Sequence[int], total: int) -> list[int]:
    """Whole numbers in the same ratios, small enough for exact prices in 64 bits.

    A price is a sum of w (2 n + 1 - 2 y) over levels; `largest` bounds |y| and `total` bounds n.

    If the ratios need larger numbers than the counts leave room for, they are rounded to the
    finest grid that fits. The optimum is then exact for weights that differ by less than one part
    in `COARSEST_WEIGHT`; in practice by one in 2^25 or better.
    """
    span = 2 * total + 4 + 4 * sum(largest)
    denominator = reduce(lcm, (w.denominator for w in weights))
    whole = [int(w * denominator) for w in weights]
    common = reduce(gcd, whole)
    whole = [w // common for w in whole]
    room = PRICE_LIMIT // span
    if sum(whole) > room:
        heaviest, steps = max(whole), room // len(whole)
        whole = [(2 * w * steps + heaviest) // (2 * heaviest) for w in whole]
        if min(w for w, given in zip(whole, weights, strict=True) if given) < COARSEST_WEIGHT:
            raise StructureError(
                "Counts are too large, or weights differ too much, for exact 64-bit arithmetic. "
                "Give weights as ratios of small whole numbers."
            )
    return whole


# -- parts ----------------------------------------------------------------------------------------


def _array(what: str, given: ArrayLike) -> NDArray[Any]:
    try:
        values = np.asarray(given)
    except ValueError:  # lists of unequal length
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "iuf":
        raise StructureError(f"{what} must be a full array of numbers.")
    return values


def _whole(what: str, values: NDArray[Any]) -> tuple[Ints, int]:
    """The values as int64, and the largest magnitude among them."""
    if values.size and values.dtype.kind in "uf":
        # Compared before they are converted, which wraps or warns; false for NaN.
        if not (values.min() >= -LARGEST_COUNT and values.max() <= LARGEST_COUNT):
            raise StructureError(f"{what} holds NaN or a number beyond 2^50.")
        if np.any(values != np.rint(values)):
            raise StructureError(f"{what} holds fractions; counts and their noise are whole.")
    whole = np.ascontiguousarray(values, dtype=np.int64)
    least, most = (int(extreme) for extreme in extremes(whole))  # -2^63 has no opposite in int64
    if (largest := max(-least, most)) > LARGEST_COUNT:
        raise StructureError(f"{what} holds NaN or a number beyond 2^50.")
    return whole, largest


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
