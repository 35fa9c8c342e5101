"""Every tier encloses brute force: one contract for all of them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import accounting as oracle
from oracles.series import RealGaussian, series_delta
from trellis.errors import PrivacyError
from trellis.privacy.accounting import Composition, Coordinates, Tier
from trellis.privacy.accounting.curves import ZcdpCurve
from trellis.privacy.accounting.distributions.bracket import bracket_curve
from trellis.privacy.accounting.distributions.exact import MixedCurve, TableCurve, exact_curve
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

WORTH_COMPARING = 1e-45  # the oracle leaves out 1e-60

TIERS = {
    "exact": exact_curve,
    "bracket": lambda composition: bracket_curve(composition, length=2**14),
    "zcdp": ZcdpCurve,
}


every_tier = pytest.mark.parametrize("tier", TIERS.values(), ids=TIERS.keys())


@st.composite
def coordinates(draw, kinds=(DiscreteGaussian, DiscreteLaplace)):
    kind = draw(st.sampled_from(kinds))
    parameter = Fraction(draw(st.integers(1, 24)), draw(st.integers(1, 12)))
    return Coordinates(kind(parameter), draw(st.integers(1, 3)), draw(st.integers(1, 3)))


def compositions(**kinds):
    return st.lists(coordinates(**kinds), min_size=1, max_size=2).map(Composition.of)


epsilons = st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 40))


@every_tier
@settings(max_examples=40, deadline=None)
@given(composition=compositions(), epsilon=epsilons)
def test_delta_is_enclosed(tier, composition, epsilon):
    truth = oracle.delta(oracle.loss_law(composition), epsilon)
    lower, upper = tier(composition).delta_bounds(np.array([epsilon]))
    assert truth <= upper[0]
    assert lower[0] <= truth + 1e-60


@every_tier
@settings(max_examples=40, deadline=None)
@given(composition=compositions(), exponent=st.floats(-40, -0.1))
def test_epsilon_is_enclosed(tier, composition, exponent):
    law, delta = oracle.loss_law(composition), 10.0**exponent
    lower, upper = tier(composition).epsilon_bounds(np.array([delta]))
    assert oracle.delta(law, float(upper[0])) <= delta
    assert lower[0] == 0 or oracle.delta(law, float(lower[0])) >= delta


@settings(max_examples=40, deadline=None)
@given(composition=compositions(), epsilon=epsilons)
def test_exact_tier_loses_no_digits(composition, epsilon):
    lower, upper = exact_curve(composition).delta_bounds(np.array([epsilon]))
    assert upper[0] <= WORTH_COMPARING or upper[0] - lower[0] <= 1e-10 * upper[0]


@settings(max_examples=15, deadline=None)
@given(composition=compositions(kinds=(DiscreteGaussian,)), epsilon=st.floats(0, 10))
def test_series_agrees_with_brute_force(composition, epsilon):
    groups = [
        RealGaussian(float(part.mechanism.parameter), part.count, part.shift)
        for part in composition.parts
    ]
    if min(group.sigma_squared for group in groups) < 2:
        with pytest.raises(PrivacyError, match="at least 2"):
            series_delta(groups, epsilon)
        return
    truth = oracle.delta(oracle.loss_law(composition), epsilon)
    found = series_delta(groups, epsilon)
    assert abs(found.value - truth) <= found.error + 1e-8 * truth + 1e-60


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([Coordinates(DiscreteGaussian(5), 3)], TableCurve),
        ([Coordinates(DiscreteLaplace(5), 3)], TableCurve),
        ([Coordinates(DiscreteLaplace(5)), Coordinates(DiscreteGaussian(5))], MixedCurve),
    ],
)
def test_which_curve_answers(parts, kind):
    assert isinstance(exact_curve(Composition.of(parts)), kind)


def test_lattice_that_does_not_fit_is_left_to_the_bracket():
    parts = [Coordinates(DiscreteGaussian(Fraction(10**9 + k, 10**8)), 2) for k in (7, 21, 33)]
    composition = Composition.of(parts)
    assert exact_curve(composition) is None
    bracket = bracket_curve(composition)
    assert bracket.tier is Tier.BRACKET
    nearby = exact_curve(Composition.of([Coordinates(DiscreteGaussian(10), 6)]))
    at = np.array(
        [0.13, 1.07, 5.03]
    )  # between atoms; on one, rounding costs a step, not its square
    np.testing.assert_allclose(bracket.delta_bounds(at)[1], nearby.delta_bounds(at)[1], rtol=1e-5)


def test_a_law_too_large_for_any_grid_is_left_to_zcdp():
    composition = Composition.of([Coordinates(DiscreteGaussian(10**20))])
    assert exact_curve(composition) is None
    assert bracket_curve(composition) is None


def test_noise_in_gaps_between_atoms_stays_inside_the_bounds():
    """Nearly equal, tiny sigma^2: most points of the lattice have masses far below round-off."""
    composition = Composition.of(
        [Coordinates(DiscreteGaussian(Fraction(1000 + k, 4000)), 1) for k in (0, 1)]
    )
    law = oracle.loss_law(composition)
    for epsilon in (0.0, 1.0, 4.0, 7.9, 8.1, 20.0, 33.3):
        lower, upper = exact_curve(composition).delta_bounds(np.array([epsilon]))
        assert lower[0] <= oracle.delta(law, epsilon) <= upper[0]


def test_the_plain_average_of_the_gap_would_be_no_lower_bound():
    """Discrete Laplace of eps0 = 0.505 has delta = 0 at 0.505; rounding must not lift it."""
    composition = Composition.of([Coordinates(DiscreteLaplace(Fraction(200, 101)))])
    curve = bracket_curve(composition, length=2**10)
    lower, upper = curve.delta_bounds(np.array([0.505, 0.4]))
    assert lower[0] == 0
    assert 0 < lower[1] <= upper[1]
