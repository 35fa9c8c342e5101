"""One tilted window of the bracket tier: see `bracket` for what is computed and why."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, inf, log2, sinh, sqrt

import numpy as np

from trellis.privacy.accounting.curves import Bounds
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray, LossGrid, LossTable
from trellis.privacy.accounting.distributions.rounded import GridLaw, Tilted

MARGIN = 10.0
"""Standard deviations from the middle of a window to its ends."""

_NEGLIGIBLE = 1e-20


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The rounded law under the tilt theta, for epsilons from `first` on.

    `table` holds p_theta(l) e^{-theta (l - first)}, and `scale` = log M - theta * first.
    `slack` bounds what errors of p_theta do to the sum over w, `mass_error` what they do to the
    sum of the few masses near epsilon.
    """

    theta: float
    first: float
    table: LossTable
    scale: float
    slack: float
    cumulated: FloatArray
    mass_error: float
    gap: float
    half_width: float
    loss_error: float

    @classmethod
    def of(cls, laws: list[GridLaw], theta: float, first: float, length: int) -> Window:
        step, groups = laws[0].step, len(laws)
        composed = _Composed.of(laws, theta, length)
        lowest = max(composed.bottom, floor(first / step) - 3 * groups)
        index = np.arange(lowest, max(composed.bottom + length, lowest + 2))
        masses, losses = composed.masses[index % length], index.astype(np.float64) * step
        norm_of_w = sqrt(min(length, 1 + _integral_of_w_squared(theta) / step))
        few_masses = composed.norm_error * sqrt(4 * groups + 3) + len(masses) * UNIT
        return cls(
            theta=theta,
            first=first,
            table=LossTable(LossGrid(losses), masses * np.exp(-theta * (losses - first))),
            scale=composed.log_moment - theta * first,
            slack=composed.mass_error + composed.norm_error * norm_of_w,
            cumulated=np.append(0.0, np.cumsum(masses)),
            mass_error=composed.mass_error + few_masses,
            gap=sqrt((1 + 4 * sinh(step / 4) ** 2) ** groups - 1) * exp(groups * step) / 2,
            half_width=2 * groups * step,
            loss_error=sum(16 * UNIT * step * float(np.abs(law.index).max()) for law in laws),
        )

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        back = np.exp(self.scale - self.theta * (epsilons - self.first))
        slack = self.slack * back
        gap = self.gap * back * exp(self.theta * self.half_width) * self._mass_near(epsilons)
        upper = exp(self.scale) * self.table.delta(epsilons - self.loss_error)
        lower = exp(self.scale) * self.table.delta(epsilons + self.loss_error)
        farthest = self.theta * (float(self.table.losses[-1]) - self.first)
        rounding = self.table.rounding + UNIT * (64 + 8 * abs(self.scale) + 8 * farthest)
        return (
            np.maximum(lower * (1 - rounding) - (slack + gap) * (1 + rounding), 0.0),
            np.minimum((upper + slack) * (1 + rounding), 1.0),
        )

    def _mass_near(self, epsilons: FloatArray) -> FloatArray:
        """Upper bound of the tilted mass within `half_width` of each epsilon."""
        width = self.half_width + 2 * self.loss_error
        start = np.searchsorted(self.table.losses, epsilons - width, side="left")
        stop = np.searchsorted(self.table.losses, epsilons + width, side="right")
        return self.cumulated[stop] - self.cumulated[start] + self.mass_error


@dataclass(frozen=True, slots=True, eq=False)
class _Composed:
    """Tilted masses of the indices from `bottom` on, each at its index modulo their number.

    `mass_error` bounds errors in the sum of all masses, `norm_error` the 2-norm of the others.
    """

    bottom: int
    masses: FloatArray
    log_moment: float
    mass_error: float
    norm_error: float

    @classmethod
    def of(cls, laws: list[GridLaw], theta: float, length: int) -> _Composed:
        tilted = [law.tilted(theta) for law in laws]
        mean, deviation = total_moments(tilted)
        deviation = max(deviation, laws[0].step)
        bottom = floor(mean / laws[0].step) - length // 2
        log_moment = sum(one.log_moment for one in tilted)
        outside = sum(
            _mass_beyond(laws, theta, end * laws[0].step, rate, log_moment)
            for end, rate in [(bottom, -MARGIN / deviation), (bottom + length, MARGIN / deviation)]
        )
        spectrum, norms = np.ones(length // 2 + 1, dtype=np.complex128), 0.0
        for law, one in zip(laws, tilted, strict=True):
            dense = np.bincount(law.index % length, one.masses, length)
            norms += sqrt(float(np.sum(dense**2)))
            spectrum *= np.fft.rfft(dense)
        masses = np.fft.irfft(spectrum, length)
        norms += sqrt(float(np.sum(masses**2)))
        return cls(
            bottom=bottom,
            masses=np.maximum(masses, 0.0),
            log_moment=log_moment,
            mass_error=2 * outside + 1.1 * sum(one.mass_error for one in tilted),
            norm_error=UNIT * (16 * log2(length) + 4 * len(laws)) * norms,
        )


def total_moments(tilted: list[Tilted]) -> tuple[float, float]:
    """Mean and standard deviation of the total loss."""
    return sum(one.mean for one in tilted), sqrt(sum(one.variance for one in tilted))


def _mass_beyond(
    laws: list[GridLaw], theta: float, end: float, rate: float, log_moment: float
) -> float:
    """The tilted mass above `end`, or below it for a negative rate, at most.

    Chernoff: it is at most E e^{rate (L - end)}, for any rate of that sign.
    """
    least = 1.0
    for _ in range(6):
        further = sum(law.tilted(theta + rate).log_moment for law in laws)
        least = min(least, exp(min(further - log_moment - rate * end, 0.0)))
        if least < _NEGLIGIBLE:
            break
        rate /= 2
    return least


def _integral_of_w_squared(theta: float) -> float:
    """Of w over x > 0; w has one maximum, below 1, so sums exceed integrals by at most 1."""
    return 1 / (theta * (2 * theta + 1) * (2 * theta + 2)) if theta else inf
