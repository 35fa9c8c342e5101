r"""The curve of a discrete privacy loss, in sums that never cancel.

A law with mass p_k at loss l_k (l_0 < l_1 < ...) and p_inf at infinity has

    delta(eps) = p_inf + \sum_{l_k > eps} p_k (1 - e^{eps - l_k}),

linear in e^eps between neighbouring losses. With a_k = \sum_{j >= k} p_j e^{l_k - l_j}

    delta(l_{k-1}) = delta(l_k) + (1 - e^{l_{k-1} - l_k}) a_k,     delta(l_last) = p_inf,
    delta(eps)     = delta(l_k) + (1 - e^{eps - l_k}) a_k          for l_{k-1} <= eps <= l_k.

All terms are positive, so every value has full relative accuracy, however small; the textbook
form P(L > eps) - e^eps Q(L > eps) loses all digits of a small delta. The last line solved for eps
is the exact inverse.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

UNIT = 2.0**-53
"""Unit round-off of a double."""

_SPAN = 16.0  # e^-16 keeps a row's weights far from underflow


@dataclass(frozen=True, slots=True, eq=False)
class LossTable:
    """delta(eps) and its inverse for eps >= 0, from the atoms with positive loss."""

    losses: FloatArray
    masses: InitVar[FloatArray]
    infinite_mass: InitVar[float] = 0.0
    discounted: FloatArray = field(init=False, repr=False)
    deltas: FloatArray = field(init=False, repr=False)

    def __post_init__(self, masses: FloatArray, infinite_mass: float) -> None:
        discounted = _discounted_suffix_sums(self.losses, masses)
        steps = -np.expm1(self.losses[:-1] - self.losses[1:]) * discounted[1:]
        deltas = np.append(_suffix_sums(steps), 0.0) + infinite_mass
        object.__setattr__(self, "discounted", discounted)
        object.__setattr__(self, "deltas", deltas)

    @property
    def rounding(self) -> float:
        """Relative error of `delta`, as a function of the floats it was made from.

        Sums of positive terms keep the relative error of their terms and add one unit per
        addition. Sums run in rows, then over rows: at most width + rows additions, twice, and
        three operations per row in carrying `discounted` from row to row. Exponentials of at
        most `_SPAN` add that many units; 64 covers the rest.
        """
        n, width = len(self.losses), _row_width(self.losses)
        side = _side(n)
        return UNIT * (width + 4 * (n // width + 1) + 2 * side + 2 * _SPAN + 64)

    def delta(self, epsilons: FloatArray) -> FloatArray:
        above = np.searchsorted(self.losses, epsilons, side="right")
        inside = np.minimum(above, len(self.losses) - 1)
        drop = np.expm1(np.minimum(epsilons - self.losses[inside], 0.0))
        return self.deltas[inside] - drop * self.discounted[inside]

    def epsilon(self, deltas: FloatArray) -> FloatArray:
        """The least eps >= 0 with delta(eps) <= deltas, up to rounding; infinite if none."""
        at = np.searchsorted(-self.deltas, -deltas, side="left")
        inside = np.minimum(at, len(self.losses) - 1)
        previous = np.where(inside > 0, self.losses[inside - 1], 0.0)
        weight = self.discounted[inside]
        share = np.divide(
            deltas - self.deltas[inside], weight, out=np.ones_like(weight), where=weight > 0
        )
        with np.errstate(divide="ignore"):
            epsilons = self.losses[inside] + np.log1p(-np.minimum(share, 1.0))
        return np.where(at < len(self.losses), np.maximum(epsilons, previous), np.inf)


def _discounted_suffix_sums(losses: FloatArray, masses: FloatArray) -> FloatArray:
    """a_k of the module's docstring, by rows so short that no factor under- or overflows."""
    width = _row_width(losses)
    rows = -(-len(losses) // width)
    padding = (0, rows * width - len(losses))
    at = np.pad(losses, padding, mode="edge").reshape(rows, width)
    row_start = at[:, :1]
    from_start = at - row_start
    weights = np.pad(masses, padding).reshape(rows, width) * np.exp(-from_start)
    within = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]

    decay = np.exp(-np.diff(row_start[:, 0])).tolist()
    below = [0.0] * rows
    for row in range(rows - 2, -1, -1):
        below[row] = decay[row] * (float(within[row + 1, 0]) + below[row + 1])
    sums = np.exp(from_start) * (within + np.array(below)[:, None])
    return sums.reshape(-1)[: len(losses)]


def _suffix_sums(terms: FloatArray) -> FloatArray:
    side = _side(len(terms))
    rows = np.pad(terms, (0, side * side - len(terms))).reshape(side, side)
    within = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
    below = np.append(np.cumsum(within[::-1, 0])[::-1][1:], 0.0)
    return (within + below[:, None]).reshape(-1)[: len(terms)]


def _row_width(losses: FloatArray) -> int:
    largest_gap = float(np.max(np.diff(losses), initial=0.0))
    fitting = int(_SPAN / largest_gap) if largest_gap * len(losses) > _SPAN else len(losses)
    return max(1, min(fitting, _side(len(losses))))


def _side(n: int) -> int:
    """Side of a square that holds n cells."""
    return int(np.ceil(np.sqrt(n))) + 1
