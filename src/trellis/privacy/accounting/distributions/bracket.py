r"""A certified bracket of delta for any composition (tier 2).

Groups of commensurate coordinates, each with its exact law, are rounded onto one grid of width h
(see `rounded`) and composed by Fourier transforms. An exponential tilt e^{theta L} moves the bulk
to the losses near eps; undone inside the sum,

    delta(eps) = e^{log M - theta eps} \sum_l p_theta(l) w(l - eps),
    w(x) = e^{-theta x} (1 - e^{-x})_+,

keeps relative accuracy at any delta. theta is at least 0, so w <= 1.

**Upper bound**: that of the rounded laws, plus
- what losses outside the transform's window can weigh (Chernoff's bound, from the moments);
- rounding: E times the 2-norm of w, by Cauchy and Schwarz. E bounds the 2-norm of the error of
  p_theta: a transform of length N of a law q errs by at most 16 u log2(N) |q|_2, and
  convolution with a probability law increases no norm;
- masses that the groups' laws do not list.

**Lower bound**: rounding replaces R = e^{eps - L} by a variable of the same mean, with G groups at
most G h away in the exponent and of relative variance at most v = (1 + 4 sinh^2(h/4))^G - 1. This
can only raise (1 - R)_+ where |L - eps| <= G h, and then by at most sqrt(v) e^{G h} / 2 (Scarf's
inequality: a variable of mean m and variance s has 2 E(1 - R)_+ <= sqrt(s + (1 - m)^2) + 1 - m).
The rounded loss is then within 2 G h of eps, and the mass there is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from trellis.privacy.accounting.composition import Composition, Coordinates
from trellis.privacy.accounting.curves import (
    Bounds,
    Tier,
    invert,
    simple_deltas,
    simple_epsilons,
)
from trellis.privacy.accounting.distributions.losses import FloatArray
from trellis.privacy.accounting.distributions.rounded import (
    GridLaw,
    LossLaw,
    commensurate,
    loss_law,
)
from trellis.privacy.accounting.distributions.window import MARGIN, Window, total_moments
from trellis.privacy.mechanisms import DiscreteGaussian

_SERVED = 1.5  # standard deviations on either side that one tilt answers for
_COARSE = 64  # steps; fine enough to choose tilts by
_NARROWEST = 8  # steps; a tilted law of smaller deviation is not worth a window
_TINY = 1e-300  # more than underflow can take


class BracketCurve:
    """Bounds of delta from a ladder of tilted windows, each made when first needed."""

    tier = Tier.BRACKET

    def __init__(self, composition: Composition, laws: list[LossLaw], length: int) -> None:
        # Wide enough for most tilts; what a window leaves out is bounded in any case.
        widest = sqrt(sum(part.count * _largest_variance(part) for part in composition.parts))
        step = 2 * MARGIN * widest / length
        self._composition = composition
        self._missing = sum(law.missing for law in laws) + _TINY
        self._laws = [law.rounded(step) for law in laws]
        self._coarse = [law.rounded(_COARSE * step) for law in laws]
        self._length = length
        self._rungs = [Rung(0.0, 0.0, _bulk(self._coarse, 0.0)[1])]
        self._windows: dict[Rung, Window] = {}

    @property
    def size(self) -> int:
        return 4 * self._length  # a guess: how many windows it will need is not known yet

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        lower, upper = np.empty_like(epsilons), np.empty_like(epsilons)
        while self._rungs[-1].last < np.max(epsilons, initial=0.0):
            self._rungs.append(self._rungs[-1].next(self._coarse))
        which = np.searchsorted([rung.last for rung in self._rungs], epsilons)
        for number in np.unique(which).tolist():
            here = which == number
            lower[here], upper[here] = self._window(number).delta_bounds(epsilons[here])
        return lower, np.minimum(upper + self._missing, simple_deltas(self._composition, epsilons))

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds:
        return invert(self.delta_bounds, deltas, simple_epsilons(self._composition, deltas))

    def _window(self, number: int) -> Window:
        rung = self._rungs[number]
        if rung not in self._windows:
            self._windows[rung] = Window.of(self._laws, rung.theta, rung.first, self._length)
        return self._windows[rung]


def bracket_curve(composition: Composition, length: int = 2**20) -> BracketCurve | None:
    """The bracket, or None where the law of some group has too many atoms.

    `length` is the number of points of a transform. The relative width falls as its inverse
    square; where epsilon meets an atom of visible mass, as its inverse.
    """
    clusters = commensurate(composition)
    laws = [law for cluster in clusters if (law := loss_law(cluster)) is not None]
    return BracketCurve(composition, laws, length) if len(laws) == len(clusters) else None


@dataclass(frozen=True, slots=True)
class Rung:
    """A tilt and the losses first..last that it answers for."""

    theta: float
    first: float
    last: float

    def next(self, laws: list[GridLaw]) -> Rung:
        """The tilt whose bulk begins about where this one ends."""
        low, high = self.theta, self.theta + 1.0
        while _bulk(laws, high)[0] < self.last:
            low, high = high, 2 * high
        for _ in range(12):
            middle = (low + high) / 2
            if _bulk(laws, middle)[0] < self.last:
                low = middle
            else:
                high = middle
        return Rung(low, self.last, _bulk(laws, high)[1])


def _bulk(laws: list[GridLaw], theta: float) -> tuple[float, float]:
    """Where the tilted loss mostly lies; nowhere, where a bounded law shrinks to its last atom."""
    mean, deviation = total_moments([law.tilted(theta) for law in laws])
    if deviation < _NARROWEST * laws[0].step / _COARSE:
        return inf, inf
    return mean - _SERVED * deviation, mean + _SERVED * deviation


def _largest_variance(part: Coordinates) -> float:
    """About the largest variance of one coordinate's loss under any tilt.

    Gaussian: v^2 / sigma^2, or that of two equal neighbouring atoms; Laplace: the square of the
    largest loss.
    """
    step = float(part.loss_step)
    if isinstance(part.mechanism, DiscreteGaussian):
        return max(part.shift * step, step**2 / 4)
    return (part.shift * step / 2) ** 2
