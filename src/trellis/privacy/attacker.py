r"""The guarantee as an attacker meets it.

An attacker who knows every record but one, and holds a suspicion about that one with prior
probability p, looks at the release and raises an alarm if it speaks for the suspicion. With a
false-alarm rate alpha, the trade-off function f bounds the detection rate by 1 - f(alpha), and
an alarm is right with probability at most

    p (1 - f(alpha)) / (p (1 - f(alpha)) + (1 - p) alpha).

Reference: Dong, Roth and Su, Gaussian differential privacy, JRSS B 2022, arXiv:1905.02383.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from trellis.wording import privacy as words

PRIOR = Fraction(words.PRIOR_PERCENT) / 100
FALSE_ALARMS = tuple(Fraction(percent) / 100 for percent in words.FALSE_ALARMS_PERCENT)


class TradeOff(Protocol):
    """Anything with a trade-off function."""

    def tradeoff(self, alpha: Fraction) -> float: ...


@dataclass(frozen=True, slots=True)
class Attack:
    """The most that an attack with this rate of false alarms can reach."""

    false_alarms: Fraction
    detected: float
    right_when_alarmed: float

    def in_words(self, prior: Fraction) -> str:
        """Both bounds are rounded up."""
        return words.ATTACK.format(
            false_alarms=float(100 * self.false_alarms),
            detected=_percent_up(self.detected),
            prior=float(100 * prior),
            right=_percent_up(self.right_when_alarmed),
        )


def strongest_attacks(
    guarantee: TradeOff,
    prior: Fraction = PRIOR,
    false_alarms: Sequence[Fraction] = FALSE_ALARMS,
) -> list[Attack]:
    """Upper bounds on what any attack learns, one per rate of false alarms."""
    attacks = []
    for alpha in false_alarms:
        detected = 1 - guarantee.tradeoff(alpha)
        true_alarm = float(prior) * detected
        right = true_alarm / (true_alarm + float((1 - prior) * alpha))
        attacks.append(Attack(alpha, detected, right))
    return attacks


def _percent_up(value: float) -> float:
    return min(math.ceil(1000 * value) / 10, 100)
