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

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

UNIT = 2.0**-53
"""Unit round-off of a double."""

_SPAN = 16.0  # e^-16 keeps a row's weights far from underflow


class LossGrid:
    """Increasing losses, in rows so short that e^{l - l'} within a row is harmless.

    What depends on the losses alone is computed once, for all laws on the same losses.
    """

    def __init__(self, losses: FloatArray) -> None:
        self.losses = losses
        self.rise = -np.expm1(losses[:-1] - losses[1:])
        self.width = _row_width(losses)
        self.rows = -(-len(losses) // self.width)
        padded = np.pad(losses, (0, self._padding), mode="edge").reshape(self.rows, self.width)
        self._shrink = np.exp(padded[:, :1] - padded)
        self._decay = np.exp(-np.diff(padded[:, 0])).tolist()

    @property
    def _padding(self) -> int:
        return self.rows * self.width - len(self.losses)

    @property
    def rounding(self) -> float:
        """Relative error of the delta of a table, as a function of the floats it is made from.

        Sums of positive terms keep the relative error of their terms and add one unit per
        addition. Sums run in rows, then over rows: at most width + rows additions, twice, and
        three operations per row in carrying a_k from row to row. A factor e^{-x} has x units
        of error for the rounding of x, and is 0 from x = 746 on; 64 covers the rest.
        """
        additions = self.width + 4 * self.rows + 2 * _side(len(self.losses))
        return UNIT * (additions + 2 * 746 + 64)

    def discounted_suffix_sums(self, masses: FloatArray) -> FloatArray:
        """The a_k of the module's docstring."""
        weights = np.pad(masses, (0, self._padding)).reshape(self._shrink.shape) * self._shrink
        within = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        totals = within[:, 0].tolist()
        below = [0.0] * self.rows
        for row in range(self.rows - 2, -1, -1):
            below[row] = self._decay[row] * (totals[row + 1] + below[row + 1])
        sums = (within + np.array(below)[:, None]) / self._shrink
        return sums.reshape(-1)[: len(self.losses)]


class LossTable:
    """delta(eps) and its inverse for eps >= 0, from the atoms with positive loss."""

    def __init__(self, grid: LossGrid, masses: FloatArray, infinite_mass: float = 0.0) -> None:
        self.losses = grid.losses
        self.rounding = grid.rounding
        self._discounted = grid.discounted_suffix_sums(masses)
        steps = _suffix_sums(grid.rise * self._discounted[1:])
        self._deltas = np.append(steps, 0.0) + infinite_mass

    def delta(self, epsilons: FloatArray) -> FloatArray:
        above = np.searchsorted(self.losses, epsilons, side="right")
        inside = np.minimum(above, len(self.losses) - 1)
        drop = np.expm1(np.minimum(epsilons - self.losses[inside], 0.0))
        return self._deltas[inside] - drop * self._discounted[inside]

    def epsilon(self, deltas: FloatArray) -> FloatArray:
        """The least eps >= 0 with delta(eps) <= deltas, up to rounding; infinite if none."""
        at = np.searchsorted(-self._deltas, -deltas, side="left")
        inside = np.minimum(at, len(self.losses) - 1)
        previous = np.where(inside > 0, self.losses[inside - 1], 0.0)
        weight = self._discounted[inside]
        share = np.divide(
            deltas - self._deltas[inside], weight, out=np.ones_like(weight), where=weight > 0
        )
        with np.errstate(divide="ignore"):
            epsilons = self.losses[inside] + np.log1p(-np.minimum(share, 1.0))
        return np.where(at < len(self.losses), np.maximum(epsilons, previous), np.inf)


def _suffix_sums(terms: FloatArray) -> FloatArray:
    """Sums of all terms from each on, in rows and then over rows."""
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
