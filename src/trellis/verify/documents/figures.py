"""What the noise of a plan costs, in every unit in which a release states it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from trellis.privacy.accounting import WorstCase
from trellis.privacy.accounting.curves import simple_epsilons
from trellis.privacy.accounting.distributions.rounding import float_above, float_below
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import accountant, moves
from trellis.wording import privacy as words

Query = dict[str, Any]

DELTAS, ALPHAS = np.logspace(-14, -2, 61), np.linspace(0, 1, 101)
"""Where the report draws its curves."""


class Figures:
    """Of one plan; every figure is found when it is first asked for."""

    def __init__(self, run: RunFiles) -> None:
        self._plan = run.plan
        self.noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
        self.paths = run.paths(self.noisy)

    @cached_property
    def rho(self) -> Fraction:
        """Zero-concentrated DP of the dearest path."""
        return self._dearest(lambda distance: Fraction(distance**2, 2), power=2)

    @cached_property
    def pure(self) -> Fraction | None:
        """Pure DP, which Gaussian noise does not give."""
        if any(q["noise"]["law"] != "discrete_laplace" for q in self.noisy):
            return None
        return self._dearest(Fraction, power=1)

    def _dearest(self, price: Callable[[int], Fraction], power: int) -> Fraction:
        return max(
            sum((self._cost(q, price, power) for q in path), Fraction(0)) for path in self.paths
        )

    def _cost(self, query: Query, price: Callable[[int], Fraction], power: int) -> Fraction:
        parameter = Fraction(query["noise"]["parameter"])  # sigma squared, or the scale
        if query["noise"]["law"] == "discrete_laplace":
            parameter **= power
        moved = moves(self._plan, query).items()
        return sum((cells * price(distance) for distance, cells in moved), Fraction(0)) / parameter

    @cached_property
    def curve(self) -> WorstCase:
        """The calculator, which remembers what it was asked: all points of a kind at once.

        Then each law of losses is made once, however many kinds of path there are.
        """
        curve = accountant(self._plan, self.paths)
        curve.epsilon_curve([*map(float, self.deltas), *DELTAS])
        alarms = [Fraction(percent) / 100 for percent in words.FALSE_ALARMS_PERCENT]
        ends = [end(alpha) for alpha in alarms for end in (float_below, float_above)]
        curve.tradeoff_curve([*ends, *ALPHAS])
        return curve

    @property
    def deltas(self) -> list[str]:
        """Where epsilon is stated."""
        stated = self._plan["budget"].get("delta")
        return list(words.DELTAS) if stated is None else [str(float(Fraction(stated)))]

    @property
    def delta(self) -> str:
        """Where the guarantee is stated in words."""
        return words.USUAL_DELTA if len(self.deltas) > 1 else self.deltas[0]

    @cached_property
    def epsilon(self) -> str:
        """There, in four decimals, rounded up."""
        return four_decimals_up(self.curve.epsilon(float(self.delta)))

    def of_part(self, curve: WorstCase | None) -> float:
        """Epsilon of a smaller change; with many charges, by the conversion from rho alone."""
        delta = float(self.delta)
        if curve is None:
            return 0.0
        if len(self.noisy) <= words.MANY_CHARGES:
            return curve.epsilon(delta)
        return max(float(simple_epsilons(case, np.array([delta]))[0]) for case in curve.cases)


def four_decimals_up(value: float) -> str:
    whole, part = divmod(math.ceil(Fraction(value) * 10_000), 10_000)
    return f"{whole}.{part:04d}"
