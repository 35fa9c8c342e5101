"""What every tier offers, and how a bound on delta becomes a bound on epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from trellis.privacy.accounting.composition import Composition
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray
from trellis.privacy.accounting.distributions.rounding import float_above
from trellis.privacy.accounting.zcdp import tight_zcdp_deltas, tight_zcdp_epsilons

Bounds = tuple[FloatArray, FloatArray]
"""A true lower and a true upper bound of each value."""

_HALVINGS = 56


class Tier(StrEnum):
    """How an answer was certified."""

    LATTICE = "lattice"
    """Exact law of the loss; the bounds differ by floating-point error alone."""

    BRACKET = "bracket"
    """Losses rounded to a grid; the bounds differ by what rounding can do."""

    ZCDP = "zcdp"
    """Too large for either: an upper bound from zero-concentrated DP, no lower bound."""


class Curve(Protocol):
    """The delta at every epsilon >= 0 for one composition, and the inverse."""

    @property
    def tier(self) -> Tier: ...

    @property
    def size(self) -> int:
        """Entries of its tables, about."""
        ...

    def delta_bounds(self, epsilons: FloatArray) -> Bounds: ...

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds: ...


@dataclass(frozen=True, slots=True)
class ZcdpCurve:
    """The bound of last resort: true for any composition, tight for none."""

    composition: Composition
    tier: Tier = Tier.ZCDP
    size: int = 0

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        return np.zeros_like(epsilons), simple_deltas(self.composition, epsilons)

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds:
        return np.zeros_like(deltas), simple_epsilons(self.composition, deltas)


def simple_deltas(composition: Composition, epsilons: FloatArray) -> FloatArray:
    """Upper bounds from zero-concentrated DP and, without Gaussian noise, from pure DP."""
    deltas = tight_zcdp_deltas(composition.rho, epsilons)
    pure = composition.pure_epsilon
    return deltas if pure is None else np.where(epsilons >= float_above(pure), 0.0, deltas)


def simple_epsilons(composition: Composition, deltas: FloatArray) -> FloatArray:
    """The epsilons that go with `simple_deltas`."""
    epsilons = tight_zcdp_epsilons(composition.rho, deltas)
    pure = composition.pure_epsilon
    return epsilons if pure is None else np.minimum(epsilons, float_above(pure))


def invert(
    delta_bounds: Callable[[FloatArray], Bounds], deltas: FloatArray, enough: FloatArray
) -> Bounds:
    """Bounds of the least epsilon at each delta, by halving [0, enough].

    `enough` is known to suffice. Below, an epsilon counts as upper bound only after the upper
    bound of delta there was seen to be at most delta, and as lower bound only after the lower
    bound was seen to exceed it; no assumption about the functions enters.
    """
    upper = _halve(lambda eps: delta_bounds(eps)[1] <= deltas, enough)[1]
    lower = _halve(lambda eps: delta_bounds(eps)[0] <= deltas, upper)[0]
    return lower, upper


def confirm(
    delta_bounds: Callable[[FloatArray], Bounds],
    deltas: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> Bounds:
    """Move estimates of epsilon outwards until the bounds of delta there confirm them."""
    step = 8 * UNIT * (1 + lower)
    while np.any(wrong := (lower > 0) & (delta_bounds(lower)[0] <= deltas)):
        lower, step = np.where(wrong, np.maximum(lower - step, 0.0), lower), 2 * step
    step = 8 * UNIT * (1 + upper)
    while np.any(wrong := np.isfinite(upper) & (delta_bounds(upper)[1] > deltas)):
        upper, step = np.where(wrong, upper + step, upper), 2 * step
    return lower, upper


def _halve(suffices: Callable[[FloatArray], np.ndarray], enough: FloatArray) -> Bounds:
    """Ends of an interval: `suffices` fails at the left end (or it is 0) and holds at the right."""
    left, right = np.zeros_like(enough), np.where(suffices(np.zeros_like(enough)), 0.0, enough)
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        enough_there = suffices(middle)
        left, right = np.where(enough_there, left, middle), np.where(enough_there, middle, right)
    return left, right
