r"""A certified bracket of delta for any composition (tier 2).

Groups of equal coordinates, each with its exact law, are rounded onto one grid of width h (see
`rounded`) and composed by Fourier transforms. An exponential tilt e^{theta L} moves the bulk to
the losses near eps; undone inside the sum,

    delta(eps) = e^{log M - theta eps} \sum_l p_theta(l) w(l - eps),
    w(x) = e^{-theta x} (1 - e^{-x})_+,

keeps relative accuracy at any delta. theta is at least 0, so w <= 1.

**Upper bound**: that of the rounded laws, plus
- what losses outside the transform's window can weigh (Chernoff's bound, from the moments);
- rounding: E times the 2-norm of w, by Cauchy and Schwarz. E bounds the 2-norm of the error of
  p_theta: a transform of length N of a law q errs by at most 16 u log2(N) |q|_2, and
  convolution with a probability law increases no norm;
- masses that the groups' laws do not list.

**Lower bound**: rounding replaces e^{eps - L} by a variable of the same mean that differs by at most
G h in the exponent, G the number of groups, with relative variance at most
v = (1 + 4 sinh^2(h/4))^G - 1. This can only raise (1 - e^{eps - L})_+ where |L - eps| <= G h, and
then by at most sqrt(v) e^{G h} / 2 (Scarf's inequality E(R - 1)_+ <= (sqrt(Var R + (ER - 1)^2) + ER - 1) / 2).
The rounded loss is then within 2 G h of eps, and the mass there is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, inf, log2, sinh, sqrt

import numpy as np

from trellis.privacy.accounting.composition import Composition
from trellis.privacy.accounting.curves import (
    Bounds,
    Tier,
    invert,
    simple_deltas,
    simple_epsilons,
)
from trellis.privacy.accounting.losses import UNIT, FloatArray, LossTable
from trellis.privacy.accounting.rounded import LossLaw, commensurate, loss_law

_LENGTH = 2**20  # points of a transform
_MARGIN = 10.0  # standard deviations from the middle of a window to its ends
_SERVED = 1.5  # standard deviations on either side that one tilt answers for
_NARROWEST = 8  # steps; a tilted law of smaller deviation is not worth a window


class BracketCurve:
    """Bounds of delta from a ladder of tilted windows, each made when first needed."""

    tier = Tier.BRACKET

    def __init__(self, composition: Composition, laws: list[LossLaw]) -> None:
        self._composition = composition
        self._laws = laws
        # A law's variance is largest untilted or where it is symmetric, at theta = -1/2.
        widest = max(_moments(laws, theta)[1] for theta in (0.0, -0.5))
        self._step = 2 * _MARGIN * widest / _LENGTH
        self._rungs = [Rung.lowest(laws, self._step)]
        self._windows: dict[Rung, Window] = {}

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        lower, upper = np.empty_like(epsilons), np.empty_like(epsilons)
        while self._rungs[-1].last < np.max(epsilons, initial=0.0):
            self._rungs.append(self._rungs[-1].next(self._laws, self._step))
        which = np.searchsorted([rung.last for rung in self._rungs], epsilons)
        for number in np.unique(which).tolist():
            here = which == number
            lower[here], upper[here] = self._window(number).delta_bounds(epsilons[here])
        upper += sum(law.missing for law in self._laws)
        return lower, np.minimum(upper, simple_deltas(self._composition, epsilons))

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds:
        return invert(self.delta_bounds, deltas, simple_epsilons(self._composition, deltas))

    def _window(self, number: int) -> Window:
        rung = self._rungs[number]
        if rung not in self._windows:
            self._windows[rung] = Window.of(self._laws, self._step, rung)
        return self._windows[rung]


def bracket_curve(composition: Composition) -> BracketCurve | None:
    """The bracket, or None where the law of some group has too many atoms."""
    clusters = commensurate(composition)
    laws = [law for cluster in clusters if (law := loss_law(cluster)) is not None]
    return BracketCurve(composition, laws) if len(laws) == len(clusters) else None


@dataclass(frozen=True, slots=True)
class Rung:
    """A tilt and the losses first..last that it answers for."""

    theta: float
    first: float
    last: float

    @classmethod
    def lowest(cls, laws: list[LossLaw], step: float) -> Rung:
        return cls(0.0, 0.0, _bulk(laws, 0.0, step)[1])

    def next(self, laws: list[LossLaw], step: float) -> Rung:
        """The tilt whose bulk begins where this one ends."""
        low, high = self.theta, self.theta + 1.0
        while _bulk(laws, high, step)[0] < self.last:
            low, high = high, 2 * high
        for _ in range(30):
            middle = (low + high) / 2
            if _bulk(laws, middle, step)[0] < self.last:
                low = middle
            else:
                high = middle
        last = _bulk(laws, high, step)[1]
        return Rung(low if last == inf else high, self.last, last)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The rounded law under one tilt, `scale` = log M - theta * first apart.

    `slack` bounds what errors of the tilted masses add to or take from the sum over w, and
    `mass_error` what they do to a sum of masses.
    """

    rung: Rung
    table: LossTable
    scale: float
    slack: float
    cumulated: FloatArray
    mass_error: float
    gap: float
    half_width: float
    loss_error: float

    @classmethod
    def of(cls, laws: list[LossLaw], step: float, rung: Rung) -> Window:
        theta = rung.theta
        centre = floor(_moments(laws, theta)[0] / step)
        bottom, top = centre - _LENGTH // 2, centre + _LENGTH // 2
        composed = _Composed.of(laws, step, theta, bottom, top)

        groups = len(laws)
        window = groups * step
        from_index = max(bottom, floor((rung.first - 3 * window) / step))
        index = np.arange(from_index, top)
        masses = composed.masses[index % _LENGTH]
        losses = index * step
        table = LossTable(losses, masses * np.exp(-theta * (losses - rung.first)))
        norm_of_w = sqrt(min(_LENGTH, 1 + _integral_of_w_squared(theta) / step))
        return cls(
            rung=rung,
            table=table,
            scale=composed.log_moment - theta * rung.first,
            slack=composed.mass_error + composed.norm_error * norm_of_w,
            cumulated=np.append(0.0, np.cumsum(masses)),
            mass_error=composed.mass_error
            + composed.norm_error * sqrt(4 * groups + 3)
            + len(masses) * UNIT,
            gap=sqrt((1 + 4 * sinh(step / 4) ** 2) ** groups - 1) * exp(window) / 2,
            half_width=2 * window,
            loss_error=sum(16 * UNIT * float(np.abs(law.losses).max()) for law in laws),
        )

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        theta, first = self.rung.theta, self.rung.first
        back = np.exp(self.scale - theta * (epsilons - first))
        slack = self.slack * back
        rounding = self.table.rounding + UNIT * (64 + 8 * np.abs(self.scale))
        upper = exp(self.scale) * self.table.delta(epsilons - self.loss_error)
        lower = exp(self.scale) * self.table.delta(epsilons + self.loss_error)
        gap = self.gap * back * exp(theta * self.half_width) * self._mass_near(epsilons)
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
    """Tilted masses by index modulo the length, and bounds of their error."""

    masses: FloatArray
    log_moment: float
    mass_error: float
    norm_error: float

    @classmethod
    def of(
        cls, laws: list[LossLaw], step: float, theta: float, bottom: int, top: int
    ) -> _Composed:
        spectrum = np.ones(_LENGTH // 2 + 1, dtype=np.complex128)
        log_moment = mass_error = norms = 0.0
        grids = [law.rounded(step) for law in laws]
        for grid in grids:
            tilted = grid.tilted(theta, step)
            log_moment += tilted.log_moment
            mass_error += tilted.excess + tilted.rounding
            dense = np.bincount(grid.index % _LENGTH, tilted.masses, _LENGTH)
            norms += sqrt(float(np.sum(dense**2)))
            spectrum *= np.fft.rfft(dense)
        masses = np.fft.irfft(spectrum, _LENGTH)
        norms += sqrt(float(np.sum(masses**2)))

        def mass_beyond(end: float, extra: float) -> float:
            """Chernoff: P(L >= end), or <= end for negative `extra`, is E e^{extra (L - end)}."""
            more = sum(grid.tilted(theta + extra, step).log_moment for grid in grids)
            return exp(min(more - log_moment - extra * end, 0.0))

        rates = [_MARGIN / _moments(laws, theta)[1] / 2**halvings for halvings in range(6)]
        outside = min(mass_beyond(top * step, rate) for rate in rates)
        outside += min(mass_beyond(bottom * step, -rate) for rate in rates)
        return cls(
            masses=np.maximum(masses, 0.0),
            log_moment=log_moment,
            mass_error=2 * outside + 1.1 * mass_error,
            norm_error=UNIT * (16 * log2(_LENGTH) + 4 * len(laws)) * norms,
        )


def _integral_of_w_squared(theta: float) -> float:
    """Of w over x > 0; w has one maximum, below 1, so sums exceed integrals by at most 1."""
    return 1 / (theta * (2 * theta + 1) * (2 * theta + 2)) if theta else inf


def _moments(laws: list[LossLaw], theta: float) -> tuple[float, float]:
    """Mean and standard deviation of the total loss under the tilt."""
    means, variances = zip(*(law.tilted_moments(theta) for law in laws), strict=True)
    return sum(means), sqrt(sum(variances))


def _bulk(laws: list[LossLaw], theta: float, step: float) -> tuple[float, float]:
    """Where the tilted loss mostly lies; nowhere, where a bounded law shrinks to its last atom."""
    mean, deviation = _moments(laws, theta)
    if deviation < _NARROWEST * step:
        return inf, inf
    return mean - _SERVED * deviation, mean + _SERVED * deviation
