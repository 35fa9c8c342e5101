"""Certified answers about one or several compositions: epsilon, delta, trade-off."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from reprlib import repr as short_repr
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import PrivacyError
from trellis.privacy.accounting.composition import Composition
from trellis.privacy.accounting.curves import (
    Bounds,
    Curve,
    Tier,
    ZcdpCurve,
    simple_deltas,
    simple_epsilons,
)
from trellis.privacy.accounting.distributions.bracket import BracketCurve, bracket_curve
from trellis.privacy.accounting.distributions.exact import exact_curve
from trellis.privacy.accounting.distributions.lattice import lattice_deviation
from trellis.privacy.accounting.distributions.losses import FloatArray
from trellis.privacy.accounting.distributions.rounding import float_above, float_below
from trellis.privacy.accounting.tradeoff import tradeoff_bounds
from trellis.privacy.accounting.zcdp import zcdp_epsilon

Number = float | Fraction

_HUGE = Fraction(10) ** 300  # no delta, alpha or useful epsilon is larger

_NOTES = {
    Tier.BRACKET: "The losses have no common lattice that fits; bounds include what rounding them "
    "to a grid can do.",
    Tier.ZCDP: "A law of the losses is too large to compute; the upper bound comes from "
    "zero-concentrated DP and there is no lower bound.",
}
_NOTE_CONTRIBUTIONS = (
    "With so little noise or so many records, it was not certified that several records do their "
    "worst in one cell; the upper bound comes from zero-concentrated DP."
)


class PrivacyCurve(ABC):
    """The privacy of the worst among some compositions, at any epsilon, delta or alpha.

    `epsilon` and `delta` return upper bounds, `tradeoff` a lower bound: true statements about
    the release. The `..._bounds` add the other side; both sides hold with certainty, rounding
    included. The `..._curve` do the same for arrays.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def cases(self) -> tuple[Composition, ...]:
        """Compositions, one per kind of neighbour; each bounds its kind."""

    @property
    @abstractmethod
    def certified(self) -> bool:
        """Whether the cases, and not only their rho, are known to include the worst one."""

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated DP, exactly."""
        return max(case.rho for case in self.cases)

    @property
    def tier(self) -> Tier:
        """How the answers are certified: the weakest way among the cases."""
        if not self.certified:
            return Tier.ZCDP
        tiers = {curve_of(case).tier for case in self.cases}
        return next(tier for tier in (Tier.ZCDP, Tier.BRACKET, Tier.LATTICE) if tier in tiers)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers should know about how they were found."""
        if not self.certified:
            return (_NOTE_CONTRIBUTIONS,)
        return (_NOTES[self.tier],) if self.tier in _NOTES else ()

    def epsilon(self, delta: Number) -> float:
        """An epsilon for which the release is (epsilon, delta)-DP, as small as certified."""
        return self.epsilon_bounds(delta)[1]

    def epsilon_bounds(self, delta: Number) -> tuple[float, float]:
        return _both_ends(self.epsilon_curve, _scalar("delta", delta))

    def epsilon_zcdp(self, delta: Number) -> float:
        """For comparison: rho + 2 sqrt(rho log(1/delta)), rounded up."""
        below = _checked_deltas(float_below(_scalar("delta", delta)))
        return zcdp_epsilon(self.rho, float(below[0]))

    def delta(self, epsilon: Number) -> float:
        """A delta for which the release is (epsilon, delta)-DP, as small as certified."""
        return self.delta_bounds(epsilon)[1]

    def delta_bounds(self, epsilon: Number) -> tuple[float, float]:
        return _both_ends(self.delta_curve, _scalar("epsilon", epsilon))

    def tradeoff(self, alpha: Number) -> float:
        """The least rate of missed detections any attack with false-alarm rate alpha can reach."""
        return self.tradeoff_bounds(alpha)[0]

    def tradeoff_bounds(self, alpha: Number) -> tuple[float, float]:
        return _both_ends(self.tradeoff_curve, _scalar("alpha", alpha))

    def epsilon_curve(self, deltas: ArrayLike) -> Bounds:
        """Lower and upper bounds of epsilon at each delta in (0, 1)."""

        def found(at: FloatArray) -> Bounds:
            return self._worst(at, simple_epsilons, lambda curve: curve.epsilon_bounds(at))

        return _remembered(self, "epsilon", _checked_deltas(deltas), found)

    def delta_curve(self, epsilons: ArrayLike) -> Bounds:
        """Lower and upper bounds of delta at each epsilon >= 0."""
        at = _checked_epsilons(epsilons)
        return self._worst(at, simple_deltas, lambda curve: curve.delta_bounds(at))

    def _worst(
        self,
        at: FloatArray,
        simple_bound: Callable[[Composition, FloatArray], FloatArray],
        bounds: Callable[[Curve], Bounds],
    ) -> Bounds:
        """The pointwise worst case; one that a simpler bound settles needs no curve."""
        lower, upper = np.zeros_like(at), np.zeros_like(at)
        certified = self.certified
        for case in self.cases:
            simple = simple_bound(case, at)
            if certified and upper.any() and (coarse := coarse_curve(case)) is not None:
                simple = np.minimum(simple, bounds(coarse)[1])
            if np.any(simple > lower):
                low, high = bounds(curve_of(case))
                lower = np.maximum(lower, low)
                upper = np.maximum(upper, np.minimum(high, simple) if certified else simple)
        return lower, upper

    def tradeoff_curve(self, alphas: ArrayLike) -> Bounds:
        """Lower and upper bounds of the trade-off function at each alpha in [0, 1].

        That of the worst case at each alpha. Case by case, so that no curve is made twice.
        """

        def found(at: FloatArray) -> Bounds:
            # No loss is infinite, so f(0) = 1; and f(1) = 0.
            lower, upper = np.where(at > 0, 0.0, 1.0), np.where(at > 0, 0.0, 1.0)
            inner = (at > 0) & (at < 1)
            if inner.any():
                lower[inner], upper[inner] = self._least_missed(at[inner])
            return lower, upper

        return _remembered(self, "tradeoff", _checked_alphas(alphas), found)

    def _least_missed(self, alphas: FloatArray) -> Bounds:
        lower = upper = np.ones_like(alphas)
        certified = self.certified
        for case in self.cases:
            coarse = coarse_curve(case) if certified and upper.max() < 1 else None
            if coarse is not None and np.all(_missed(case, coarse, alphas)[0] >= upper):
                continue
            low, high = _missed(case, curve_of(case), alphas, certified=certified)
            lower, upper = np.minimum(lower, low), np.minimum(upper, high)
        return lower, upper


@dataclass(frozen=True, slots=True)
class WorstCase(PrivacyCurve):
    """The pointwise worst of several compositions, such as those of pairs of paths."""

    compositions: tuple[Composition, ...]
    complete: bool = True
    """Whether they are known to include the worst one."""

    def __post_init__(self) -> None:
        if not self.compositions:
            raise PrivacyError("Nothing to account for: give at least one composition.")
        # The costliest first, so that the others are often settled by their rho alone; among
        # equals those of few coordinates, whose losses are the most uneven.
        ordered = sorted(set(self.compositions), key=lambda case: (-case.rho, case.n_coordinates))
        object.__setattr__(self, "compositions", tuple(ordered))

    @property
    def cases(self) -> tuple[Composition, ...]:
        return self.compositions

    @property
    def certified(self) -> bool:
        return self.complete


class _CurveCache:
    """The curves asked for last, as many as hold `capacity` table entries together."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._curves: OrderedDict[Composition, Curve] = OrderedDict()
        self._lock = Lock()

    def __call__(self, composition: Composition) -> Curve:
        """The curve of the first tier that fits."""
        with self._lock:
            if composition in self._curves:
                self._curves.move_to_end(composition)
                return self._curves[composition]
        curve = exact_curve(composition) or bracket_curve(composition) or ZcdpCurve(composition)
        with self._lock:
            if composition not in self._curves:
                self._curves[composition] = curve
                self._free -= curve.size
            while self._free < 0:
                self._free += self._curves.popitem(last=False)[1].size
        return curve

    def clear(self) -> None:
        with self._lock:
            self._free += sum(curve.size for curve in self._curves.values())
            self._curves.clear()


curve_of = _CurveCache(capacity=2**23)


_COARSE = 2**16


@lru_cache(maxsize=256)
def coarse_curve(composition: Composition) -> BracketCurve | None:
    """Where the lattice is fine or does not fit, a quick bracket: enough to settle most cases."""
    if composition.laplace or lattice_deviation(composition.gaussian) < _COARSE:
        return None
    return bracket_curve(composition, _COARSE)


def forget() -> None:
    """Drop all curves and answers that are kept."""
    curve_of.clear()
    coarse_curve.cache_clear()
    _answers.cache_clear()


def _missed(
    case: Composition, curve: Curve, alphas: FloatArray, *, certified: bool = True
) -> Bounds:
    """Bounds of the trade-off function of one case; if not certified, zCDP's from below."""

    def deltas(epsilons: FloatArray) -> Bounds:
        lower, upper = curve.delta_bounds(epsilons)
        return lower, upper if certified else simple_deltas(case, epsilons)

    half = (1 - alphas) / 2
    enough = curve.epsilon_bounds(half)[1] if certified else simple_epsilons(case, half)
    return tradeoff_bounds(deltas, alphas, enough - np.log(half))


_MOST_REMEMBERED = 1024


@lru_cache(maxsize=64)
def _answers(curve: PrivacyCurve, question: str) -> dict[float, tuple[float, float]]:  # noqa: ARG001
    """The answers, by argument; every document of a release asks the same questions."""
    return {}


def _remembered(
    curve: PrivacyCurve, question: str, at: FloatArray, found: Callable[[FloatArray], Bounds]
) -> Bounds:
    if at.size > _MOST_REMEMBERED:
        return found(at)
    answers = _answers(curve, question)
    if new := [x for x in dict.fromkeys(at.tolist()) if x not in answers]:
        lower, upper = found(np.array(new))
        answers.update(zip(new, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))
    both = np.array([answers[x] for x in at.tolist()]).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _both_ends(curve: Callable[[FloatArray], Bounds], exact: Fraction) -> tuple[float, float]:
    """Bounds at an exact argument, whichever way it rounds; all our curves decrease."""
    lower, upper = curve(np.array([float_below(exact), float_above(exact)]))
    return float(lower[1]), float(upper[0])


def _scalar(what: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PrivacyError(
            f"{what} = {short_repr(value)} is not one number; for many, use the method "
            "whose name ends in _curve."
        )
    if isinstance(value, Rational):
        return min(Fraction(value), _HUGE)
    if not np.isfinite(float(value)):
        raise PrivacyError(f"{what} = {value} is not a finite number.")
    return Fraction(float(value))


def _checked_deltas(deltas: ArrayLike) -> FloatArray:
    return _checked("delta", deltas, lambda x: (x > 0) & (x < 1), "strictly between 0 and 1")


def _checked_epsilons(epsilons: ArrayLike) -> FloatArray:
    return _checked(
        "epsilon", epsilons, lambda x: (x >= 0) & np.isfinite(x), "at least 0 and finite"
    )


def _checked_alphas(alphas: ArrayLike) -> FloatArray:
    return _checked("alpha", alphas, lambda x: (x >= 0) & (x <= 1), "between 0 and 1")


def _checked(
    what: str, values: ArrayLike, valid: Callable[[FloatArray], np.ndarray], allowed: str
) -> FloatArray:
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.ndim > 1:
        raise PrivacyError(f"Values of {what} must come as a list, not as a table.")
    if not np.all(good := valid(array)):
        raise PrivacyError(f"{what} = {array[~good][0]:g} must be {allowed}.")
    return array
