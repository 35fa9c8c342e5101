r"""The least noise for a stated (epsilon, delta).

Every table has a share; its noise parameter (sigma^2 of Gaussian noise, the scale of Laplace
noise) is `noise` / share. One number remains to be found: the least `noise`, a decimal of few
digits, whose exact delta at epsilon is at most delta. The losses lie on the lattice of the shares
whatever `noise` is: shares with a small common denominator keep the accountant exact and fast.

What the tight zCDP bound asks for always suffices. More Gaussian noise need not mean a smaller
delta: with few coordinates and little noise, delta(sigma^2) has teeth, where a loss passes epsilon.
There the way down from the zCDP bound is walked in small steps until delta is a thousand times too
large, and the lowest value that held is refined. Otherwise delta is smooth and close to that of
continuous noise, which is solved first and corrected in a few steps. More Laplace noise is always
better (it is less noise plus an independent variable), and its range is halved. Whatever the search
assumes, a value is returned only after its own certified delta was seen to hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, exp, floor, inf, log, log10, sqrt
from numbers import Rational, Real
from reprlib import repr as short_repr

import numpy as np

from trellis.errors import PrivacyError
from trellis.privacy.accounting.accountant import all_certified, moved, relation
from trellis.privacy.accounting.composition import Coordinates, whole
from trellis.privacy.accounting.distributions.continuous import continuous_rho
from trellis.privacy.accounting.distributions.rounding import float_below
from trellis.privacy.accounting.privacy_curve import Number, WorstCase
from trellis.privacy.accounting.zcdp import tight_zcdp_epsilons, zcdp_epsilon
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from trellis.privacy.neighbours import Neighbours

Share = Fraction | int | str
Path = Sequence[Share] | Mapping[Fraction, int] | Mapping[int, int] | Mapping[str, int]
Kind = type[DiscreteGaussian] | type[DiscreteLaplace]
Case = tuple[tuple[Fraction, int], ...]
"""Shares of the tables in which a cell moves, and how many cells move for each."""

_FEW = 8  # coordinates up to which delta(sigma^2) is taken to have teeth; seen up to 6
_TOOTH = Fraction(101, 100)  # ratio of neighbouring values in the scan for them
_FINE = Fraction(1, 100)  # losses closer together than this make no teeth worth a scan


@dataclass(frozen=True, slots=True)
class Calibration:
    """Noise that just keeps a stated (epsilon, delta), and what the zCDP bound would have taken."""

    noise: Fraction
    zcdp_noise: float
    guarantee: WorstCase
    kind: Kind

    def mechanism(self, share: Share) -> Mechanism:
        """The mechanism of a table with this share."""
        return self.kind(self.noise / _share(share))

    @property
    def saved(self) -> float:
        """The part of the noise parameter saved against eps = rho + 2 sqrt(rho log(1/delta))."""
        return 1 - float(self.noise) / self.zcdp_noise


def calibrate_gaussian(
    epsilon: Number,
    delta: Number,
    count: int,
    neighbours: Neighbours | str = "add_remove",
    max_contribution: int = 1,
) -> Fraction:
    """The least sigma^2, a decimal of six digits, for `count` tables at (epsilon, delta)."""
    path: Path = {1: whole("count", count)}
    return calibrate(epsilon, delta, [path], neighbours, max_contribution).noise


def calibrate(
    epsilon: Number,
    delta: Number,
    paths: Iterable[Path],
    neighbours: Neighbours | str,
    max_contribution: int = 1,
    kind: Kind = DiscreteGaussian,
    digits: int = 6,
) -> Calibration:
    """The least noise such that the worst path, or pair of paths, keeps (epsilon, delta).

    `paths` holds, for every distinct path from the root to a leaf, the shares of the tables
    measured on it, one by one or as numbers of tables by share. Only relative sizes matter;
    shares need not sum to 1.
    """
    epsilon, delta = _target(epsilon, delta)
    family = _Family.of(paths, neighbours, max_contribution, kind)
    active = [0]
    while True:
        noise = _least_noise(family, active, epsilon, delta, digits)
        guarantee = family.at(noise)
        if not guarantee.certified:
            noise = _enough_noise(family, epsilon, delta, digits)
            guarantee = family.at(noise)
        if guarantee.delta(epsilon) <= delta:
            rho = _largest_rho(lambda rho: zcdp_epsilon(rho, float(delta)), epsilon)
            return Calibration(noise, family.noise_for(rho), guarantee, kind)
        every = range(len(family.cases))
        active.append(max(every, key=lambda i: family.at(noise, [i]).delta(epsilon)))


@dataclass(frozen=True, slots=True)
class _Family:
    """Guarantees by noise: one case per kind of neighbour."""

    cases: tuple[Case, ...]
    records: int
    kind: Kind

    @classmethod
    def of(
        cls, paths: Iterable[Path], neighbours: Neighbours | str, records: int, kind: Kind
    ) -> _Family:
        distinct = {_counted(path) for path in paths}
        cells = relation(neighbours).cells_moved
        cases = {
            _summed(moving) for moving in combinations_with_replacement(sorted(distinct), cells)
        }
        if not cases or not all(distinct):
            raise PrivacyError("A path needs at least one table to measure: give its shares.")
        costliest_first = sorted(cases, key=lambda case: sum(s * n for s, n in case), reverse=True)
        return cls(tuple(costliest_first), whole("max_contribution", records), kind)

    def at(
        self, noise: Fraction, which: Iterable[int] | None = None, assume_worst: bool = False
    ) -> WorstCase:
        """The guarantee of all or some cases; `assume_worst` leaves out a costly certificate."""
        chosen = self.cases if which is None else [self.cases[number] for number in which]
        charges = [
            tuple(Coordinates(self.kind(noise / share), n) for share, n in case) for case in chosen
        ]
        certified = assume_worst or all(all_certified(charge, self.records) for charge in charges)
        return WorstCase(tuple(moved(charge, 1, self.records) for charge in charges), certified)

    def noise_for(self, rho: float) -> float:
        """The noise at which zero-concentrated DP costs rho."""
        ratio = float(self.at(Fraction(1)).rho) / rho
        # rho falls with the noise parameter, or with its square.
        return ratio if self.kind is DiscreteGaussian else sqrt(ratio)

    def has_teeth(self, noise: Fraction) -> bool:
        """Few coordinates, whose losses lie far apart."""
        fewest = min(sum(n for _, n in case) for case in self.cases)
        widest = max(share for case in self.cases for share, _ in case) * self.records / noise
        return fewest <= _FEW and widest > _FINE


def _least_noise(
    family: _Family, active: list[int], epsilon: Fraction, delta: Fraction, digits: int
) -> Fraction:
    """The least decimal found at which the active cases keep (epsilon, delta)."""

    def delta_at(noise: Fraction) -> float:
        return family.at(noise, active, assume_worst=True).delta(epsilon)

    high, low = _enough_noise(family, epsilon, delta, digits), None
    gaussian = family.kind is DiscreteGaussian
    teeth = gaussian and family.has_teeth(high)
    if gaussian and not teeth:
        close = Fraction(family.noise_for(continuous_rho(float(epsilon), float(delta))))
        return _least_nearby(delta_at, delta, close, high, digits)
    hopeless = min(1000 * delta, (1 + delta) / 2) if teeth else delta
    noise, found = high, delta
    while low is None or found <= hopeless:
        noise = _decimal(noise / (_TOOTH if teeth else 2), digits, floor)
        found = delta_at(noise)
        if found <= delta:
            high, low = noise, None
        elif low is None:
            low = noise
    while low < (middle := _decimal((low + high) / 2, digits, floor)) < high:
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def _least_nearby(
    delta_at: Callable[[Fraction], float],
    delta: Fraction,
    close: Fraction,
    enough: Fraction,
    digits: int,
) -> Fraction:
    """The least decimal near `close` that holds, where delta falls smoothly; `enough` holds."""
    found: dict[Fraction, float] = {}

    def holds(noise: Fraction) -> bool:
        found[noise] = delta_at(noise)
        return found[noise] <= delta

    step = Fraction(1, 10 ** (digits - 1))
    high = min(_decimal(close, digits, ceil), enough)
    if holds(high):
        while holds(low := _decimal(high * (1 - step), digits, floor)):
            high, step = low, min(10 * step, Fraction(1, 2))
    else:
        low, high = high, min(_decimal(high * (1 + step), digits, ceil), enough)
        while not holds(high):
            step = min(10 * step, Fraction(1, 2))
            low, high = high, min(_decimal(high * (1 + step), digits, ceil), enough)
    while True:
        part = _crossing(found[low], found[high], float(delta))
        middle = _decimal(low + (high - low) * Fraction(part), digits, ceil)
        if middle >= high:
            middle = _decimal((low + high) / 2, digits, floor)
        if not low < middle < high:
            return high
        low, high = (low, middle) if holds(middle) else (middle, high)


def _crossing(delta_low: float, delta_high: float, delta: float) -> float:
    """Where, from 0 to 1, log delta passes its target; kept away from the ends."""
    if not 0 < delta_high < delta_low:
        return 0.5
    part = log(delta_low / delta) / log(delta_low / delta_high)
    return min(max(part, 0.1), 0.9)


def _enough_noise(family: _Family, epsilon: Fraction, delta: Fraction, digits: int) -> Fraction:
    """What the tight zCDP bound asks for: always enough."""
    at = np.array([float_below(delta)])
    rho = _largest_rho(lambda rho: float(tight_zcdp_epsilons(rho, at)[0]), epsilon)
    return _decimal(Fraction(family.noise_for(rho * (1 - 1e-9))), digits, ceil)


def _largest_rho(epsilon_of: Callable[[float], float], epsilon: Fraction) -> float:
    """The largest rho whose epsilon is within the target; epsilon_of increases."""
    low, high = -690.0, 690.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(exp(middle)) <= epsilon else (low, middle)
    return exp(low)


def _decimal(value: Fraction, digits: int, rounded: Callable[[Fraction], int]) -> Fraction:
    """`value` rounded to this many significant decimal digits."""
    unit = Fraction(10) ** (floor(log10(value)) - digits + 1)
    return rounded(value / unit) * unit


def _counted(path: Path) -> Case:
    tables = path.items() if isinstance(path, Mapping) else ((share, 1) for share in path)
    return _summed([[(_share(share), whole("the number of tables", n)) for share, n in tables]])


def _summed(cases: Iterable[Iterable[tuple[Fraction, int]]]) -> Case:
    counts: Counter[Fraction] = Counter()
    for case in cases:
        for share, n in case:
            counts[share] += n
    return tuple(sorted(counts.items()))


def _target(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    for name, value, valid in (
        ("epsilon", epsilon, lambda x: 0 < x < inf),
        ("delta", delta, lambda x: 0 < x < 1),
    ):
        if isinstance(value, bool) or not isinstance(value, Real) or not valid(float(value)):
            raise PrivacyError(
                f"No noise gives {name} = {short_repr(value)}: epsilon must be positive and "
                "finite, delta strictly between 0 and 1."
            )
    return Fraction(epsilon), Fraction(delta)


def _share(share: Share) -> Fraction:
    try:
        exact = Fraction(share) if isinstance(share, Rational | str) else Fraction(0)
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if exact <= 0:
        raise PrivacyError(
            f"A share of {short_repr(share)} is not a positive fraction; leave out tables that "
            'get none, and write others as "2/15" or a Fraction.'
        )
    return exact
