"""What a set of measured partitions costs, in each currency."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import PrivacyError
from trellis.privacy.group_size_changes import SizeQuery, SizeTable
from trellis.privacy.guarantee import Charge, Guarantee, round_up
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


def guarantee(*mechanisms, neighbours=ADD_REMOVE, m=1) -> Guarantee:
    charges = (Charge(f"level {i}", mechanism) for i, mechanism in enumerate(mechanisms))
    return Guarantee(Protection("person", neighbours, m), tuple(charges))


MIXED = guarantee(DiscreteGaussian(2), DiscreteLaplace(3), DiscreteGaussian("1/3"))
GAUSSIAN = guarantee(DiscreteGaussian(20), DiscreteGaussian(30))
LAPLACE = guarantee(DiscreteLaplace(3), DiscreteLaplace(5))


# -- rho and pure epsilon, exactly ----------------------------------------------------------------


def test_rho_adds_up_and_laplace_counts_half_its_squared_epsilon():
    assert MIXED.rho == Fraction(1, 4) + Fraction(1, 9) / 2 + Fraction(3, 2)


@pytest.mark.parametrize(("neighbours", "k"), [(ADD_REMOVE, 1), (REPLACE, 2)])
@pytest.mark.parametrize("m", [1, 3])
def test_the_relation_and_the_contribution_set_the_price(neighbours, k, m):
    gaussian = guarantee(DiscreteGaussian(5), neighbours=neighbours, m=m)
    laplace = guarantee(DiscreteLaplace(5), neighbours=neighbours, m=m)
    assert gaussian.rho == Fraction(k * m**2, 10)
    assert laplace.pure_epsilon == Fraction(k * m, 5)
    assert laplace.rho == k * Fraction(m, 5) ** 2 / 2


def test_the_plan_and_the_accountant_agree_on_laplace_noise():
    """Each cell that moves costs half its squared epsilon: not the square of their sum."""
    wide = SizeTable(SizeQuery.CUMULATIVE, max_quantity=4)
    laplace = Guarantee(
        Protection("person", ADD_REMOVE, 1), (Charge("sizes", DiscreteLaplace(2), wide),)
    )
    assert laplace.rho == 4 * Fraction(1, 2) ** 2 / 2
    assert laplace.rho == laplace.accountant.rho
    assert laplace.pure_epsilon == 2


def test_pure_epsilon_is_there_only_if_all_noise_is_laplace():
    assert LAPLACE.pure_epsilon == Fraction(8, 15)
    assert MIXED.pure_epsilon is None
    assert GAUSSIAN.pure_epsilon is None


def test_nothing_measured_costs_nothing():
    assert guarantee().rho == guarantee().pure_epsilon == 0


# -- other relations ------------------------------------------------------------------------------


def test_added_or_removed_protects_replaced_at_twice_the_moves():
    assert GAUSSIAN.under(REPLACE).rho == 2 * GAUSSIAN.rho
    assert LAPLACE.under(REPLACE).pure_epsilon == 2 * LAPLACE.pure_epsilon
    assert GAUSSIAN.under(ADD_REMOVE) == GAUSSIAN


def test_replaced_says_nothing_about_added_or_removed():
    replaced = GAUSSIAN.under(REPLACE)
    assert replaced.under(REPLACE) == replaced
    with pytest.raises(PrivacyError, match="says nothing about added or removed"):
        replaced.under(ADD_REMOVE)


# -- epsilon at delta, by its properties ----------------------------------------------------------


@pytest.mark.parametrize("each", [MIXED, GAUSSIAN, LAPLACE, LAPLACE.under(REPLACE)])
def test_epsilon_is_within_the_bounds_that_any_accountant_keeps(each):
    deltas = [1e-12, 1e-9, 1e-6, 1e-3]
    epsilons = [each.epsilon(delta) for delta in deltas]
    assert epsilons == sorted(epsilons, reverse=True)
    for delta, epsilon in zip(deltas, epsilons, strict=True):
        rho = float(each.rho)
        zcdp = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke, arXiv:1605.02065
        assert 0 < epsilon <= zcdp * (1 + 1e-12)
        if each.pure_epsilon is not None:
            assert epsilon <= float(each.pure_epsilon) * (1 + 1e-12)


def test_epsilon_takes_exact_deltas_too():
    assert GAUSSIAN.epsilon(Fraction(1, 10**6)) == pytest.approx(GAUSSIAN.epsilon(1e-6), rel=1e-9)


def test_less_noise_and_more_measurements_cost_more():
    least = guarantee(DiscreteGaussian(20)).epsilon(1e-6)
    assert least < GAUSSIAN.epsilon(1e-6)
    assert least < guarantee(DiscreteGaussian(10)).epsilon(1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2, Fraction(0), Fraction(3, 2), math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(PrivacyError, match="delta"):
        GAUSSIAN.epsilon(delta)


# -- numbers for people ---------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.floats(0, 1e6))
def test_bounds_are_never_shown_smaller_than_they_are(value):
    shown = Fraction(round_up(value))
    assert value <= shown < Fraction(value) + Fraction(1, 10**4)


def test_round_numbers_stay_round():
    assert round_up(0.5) == "0.5000"
    assert round_up(12.0, digits=1) == "12.0"
    assert round_up(0.1, digits=2) == "0.11"  # the float is a little more than 1/10
