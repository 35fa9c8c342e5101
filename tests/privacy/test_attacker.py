"""What an attacker can learn, against exact answers."""

from fractions import Fraction
from math import exp

import pytest

from trellis.privacy import Accountant, DiscreteGaussian, DiscreteLaplace
from trellis.privacy.attacker import FALSE_ALARMS, PRIOR, Attack, strongest_attacks


class Perfect:
    """No privacy at all: nothing is missed."""

    def tradeoff(self, alpha):
        return 0.0


class Blind:
    """Perfect privacy: an attack can only guess."""

    def tradeoff(self, alpha):
        return 1 - float(alpha)


def test_without_privacy_every_suspicion_is_confirmed():
    for attack in strongest_attacks(Perfect()):
        assert attack.detected == 1
        assert attack.right_when_alarmed == pytest.approx(
            0.1 / (0.1 + 0.9 * float(attack.false_alarms))
        )


def test_with_perfect_privacy_belief_stays_what_it_was():
    for attack in strongest_attacks(Blind()):
        assert attack.right_when_alarmed == pytest.approx(0.1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_pure_privacy_bounds_the_odds(epsilon):
    """Under epsilon-DP the odds of a suspicion grow by a factor of at most exp(epsilon)."""
    accountant = Accountant("add_remove").add(DiscreteLaplace(1 / epsilon))
    for attack in strongest_attacks(accountant):
        odds = attack.right_when_alarmed / (1 - attack.right_when_alarmed)
        assert odds <= exp(epsilon) / 9 * (1 + 1e-9)


def test_more_noise_teaches_less():
    strong, weak = (
        strongest_attacks(Accountant("replace").add(DiscreteGaussian(s))) for s in (1, 50)
    )
    for much, little in zip(strong, weak, strict=True):
        assert much.detected > little.detected
        assert much.right_when_alarmed > little.right_when_alarmed


def test_words_round_up():
    words = Attack(FALSE_ALARMS[1], 0.12341, 0.99999).in_words(PRIOR)
    assert "With 1 % false alarms" in words
    assert "at most 12.4 %" in words
    assert "held with 10 % belief becomes at most 100 %" in words
