"""The accountant: published numbers, edges, bad input."""

import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import accounting as oracle
from oracles.series import RealGaussian, series_delta
from trellis.errors import PrivacyError
from trellis.privacy.accounting import (
    Accountant,
    Tier,
    WorstCase,
    tight_zcdp_epsilons,
    zcdp_epsilon,
)
from trellis.privacy.accounting.distributions.bracket import bracket_curve
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours

RHO = Fraction("3.65")
LEVELS = {
    "us": 20,
    "state": 274,
    "county": 85,
    "pepg": 131,
    "tract subset group": 131,
    "tract subset": 238,
    "optimized block group": 118,
    "block": 3,
}
PER_LEVEL = {  # Bureau's and exact epsilon at 1e-11, the same at 1e-5
    "us": (2.7925, 2.4682, 1.9065, 1.4781),
    "state": (11.0661, 10.1254, 7.7866, 6.5716),
    "county": (5.9167, 5.3276, 4.0901, 3.3285),
    "pepg": (7.4383, 6.7383, 5.1707, 4.2673),
    "tract subset": (10.2501, 9.3536, 7.1937, 6.0471),
    "optimized block group": (7.0364, 6.3624, 4.8843, 4.0173),
    "block": (1.0642, 0.9178, 0.7211, 0.5222),
}


def level_noise(level):
    return DiscreteGaussian(10 / (2 * RHO * Fraction(LEVELS[level], 1000)))


def census(neighbours="add_remove"):
    accountant = Accountant(neighbours)
    for level in LEVELS:
        accountant = accountant.add(level_noise(level), count=10)
    return accountant


def gaussian(sigma_squared, count=1, **options):
    return Accountant("add_remove").add(DiscreteGaussian(sigma_squared), count, **options)


def laplace(scale, count=1, **options):
    return Accountant("add_remove").add(DiscreteLaplace(scale), count, **options)


class TestPublishedNumbers:
    @pytest.mark.parametrize(
        ("delta", "epsilon"), [(1e-11, 21.267202), (1e-10, 20.324690), (1e-5, 14.576027)]
    )
    def test_census(self, delta, epsilon):
        lower, upper = census().epsilon_bounds(delta)
        assert lower <= upper == pytest.approx(epsilon, abs=1e-6)
        assert upper - lower < 1e-10

    def test_census_delta_has_ten_digits(self):
        lower, upper = census().delta_curve(np.linspace(0, 60, 500))
        assert np.all(upper - lower <= 1e-10 * upper)
        assert upper[-1] < 1e-90

    def test_census_replace(self):
        accountant = census("replace")
        assert accountant.epsilon(1e-10) == pytest.approx(31.0193, abs=5e-5)
        assert accountant.epsilon_zcdp(1e-10) == pytest.approx(33.2298, abs=5e-5)

    def test_census_with_the_rounded_parameters_of_the_paper(self):
        accountant = Accountant("add_remove")
        for printed in ("68.49", "5", "16.12", "10.46", "10.46", "5.76", "11.61", "456.62"):
            accountant = accountant.add(DiscreteGaussian(printed), count=10)
        found = [accountant.epsilon(delta) for delta in (1e-11, 1e-10, 1e-5)]
        assert found == pytest.approx([21.263296, 20.320929, 14.573143], abs=2e-6)

    @pytest.mark.parametrize("level", PER_LEVEL)
    def test_each_level(self, level):
        accountant = Accountant("add_remove").add(level_noise(level), count=10)
        found = [
            value
            for delta in (1e-11, 1e-5)
            for value in (accountant.epsilon_zcdp(delta), accountant.epsilon(delta))
        ]
        assert found == pytest.approx(PER_LEVEL[level], abs=5.1e-5)

    @pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.14525635), (1e-5, 0.94097836)])
    def test_tradeoff(self, alpha, beta):
        lower, upper = census().tradeoff_bounds(alpha)
        assert lower == pytest.approx(beta, abs=1e-8)
        assert lower <= upper < lower + 1e-8

    def test_laplace(self):
        accountant = laplace(2, count=80)
        assert accountant.epsilon(1e-10) == pytest.approx(33.89915, abs=1e-5)
        assert accountant.epsilon(1e-35) == 40

    def test_laplace_without_a_lattice(self):
        """8 x 10 with eps_k = 0.1 sqrt(k), irrational; 14 digits of it hardly differ."""
        accountant = Accountant("add_remove")
        for k in range(1, 9):
            rate = Fraction(0.1 * k**0.5).limit_denominator(10**7)
            accountant = accountant.add(DiscreteLaplace(1 / rate), count=10)
        assert accountant.tier is Tier.BRACKET
        assert "grid" in accountant.notes[0]
        lower, upper = accountant.epsilon_bounds(1e-10)
        assert lower <= 12.3786014515 <= upper + 1e-9
        assert upper - lower < 1e-6
        assert accountant.composition.pure_epsilon == pytest.approx(16.306, abs=1e-3)

    def test_tighter_zcdp_conversion(self):
        found = tight_zcdp_epsilons(RHO, np.array([1e-11, 1e-10, 1e-5]))
        assert found == pytest.approx([22.0621, 21.1430, 15.5804], abs=5e-5)
        assert zcdp_epsilon(RHO, 1e-10) == pytest.approx(21.9851, abs=5e-5)


class TestTiersOnTheCensus:
    def test_bracket_is_narrow_and_contains_the_exact_value(self):
        accountant = census()
        exact = accountant.delta_bounds(20.3)
        lower, upper = bracket_curve(accountant.composition, 2**20).delta_bounds(np.array([20.3]))
        assert lower[0] <= exact[0]
        assert exact[1] <= upper[0] * (1 + 1e-12)
        assert upper[0] - lower[0] <= 1e-5 * upper[0]

    def test_bracket_of_gaussian_and_laplace_contains_the_exact_value(self):
        accountant = census().add(DiscreteLaplace(10), count=10)
        exact = accountant.delta_curve([1.0, 10.0, 30.0])
        curve = bracket_curve(accountant.composition, 2**18)
        lower, upper = curve.delta_bounds(np.array([1.0, 10.0, 30.0]))
        assert np.all(lower <= exact[1])
        assert np.all(exact[0] <= upper)
        assert np.all(upper - lower <= 1e-4 * upper)

    @pytest.mark.parametrize("epsilon", [0.0, 3.0, 14.576027, 20.3, 30.0])
    def test_series_agrees(self, epsilon):
        groups = [RealGaussian(float(level_noise(level).sigma_squared), 10) for level in LEVELS]
        found = series_delta(groups, epsilon)
        assert found.value == pytest.approx(census().delta(epsilon), rel=1e-8)


class TestEdges:
    def test_delta_above_the_total_variation_needs_no_epsilon(self):
        accountant = gaussian(100)
        assert accountant.epsilon(accountant.delta(0)) == 0
        assert accountant.epsilon_bounds(0.9) == (0, 0)

    @pytest.mark.parametrize("sigma_squared", ["1/100", "1/3", "1.5", "1000", "1e8"])
    @pytest.mark.parametrize("count", [1, 7])
    def test_any_amount_of_noise(self, sigma_squared, count):
        accountant = gaussian(sigma_squared, count)
        deltas = 10.0 ** -np.arange(1, 31)
        lower, upper = accountant.epsilon_curve(deltas)
        assert accountant.tier is Tier.LATTICE
        assert np.all(lower <= upper)
        assert np.all(np.diff(upper) >= -1e-12 * upper[1:])
        assert np.all(upper - lower <= 1e-11 * (1 + upper))
        assert all(upper[i] <= accountant.epsilon_zcdp(deltas[i]) for i in range(30))

    def test_too_much_noise_for_a_table_is_left_to_zcdp_and_said(self):
        accountant = gaussian(10**16)
        assert accountant.tier is Tier.ZCDP
        assert "zero-concentrated" in accountant.notes[0]
        lower, upper = accountant.epsilon_bounds(1e-10)
        assert 0 == lower < upper <= accountant.epsilon_zcdp(1e-10)

    def test_one_laplace_coordinate_is_randomised_response(self):
        accountant = laplace("1/2")
        truth = (np.exp(2) - np.exp(0.7)) / (1 + np.exp(2))
        assert accountant.delta(0.7) == pytest.approx(truth, rel=1e-12)
        assert accountant.epsilon(1e-30) == pytest.approx(2, abs=1e-12)
        assert accountant.epsilon(1e-30) <= 2
        assert accountant.delta(2) == 0
        assert accountant.delta(1e6) == 0

    def test_gaussian_delta_is_never_zero(self):
        assert 0 < gaussian(5).delta(1e6) < 1e-300

    def test_deltas_below_the_tabulated_range_still_get_an_answer(self):
        lower, upper = gaussian(5, 10).epsilon_bounds(1e-200)
        assert lower < upper <= gaussian(5, 10).epsilon_zcdp(1e-200)

    def test_exact_arguments_are_rounded_to_the_safe_side(self):
        accountant = gaussian(5, 10)
        lower, upper = accountant.epsilon_bounds(Fraction(1, 10**10))
        assert lower < upper == pytest.approx(accountant.epsilon(1e-10), rel=1e-12)
        assert accountant.delta(Fraction(1, 3)) >= accountant.delta(0.33333333333333337)

    def test_order_and_grouping_do_not_matter(self):
        one, other = DiscreteGaussian(5), DiscreteGaussian(7)
        together = Accountant("replace").add(one, 3).add(other)
        apart = Accountant("replace").add(other).add(one).add(one, 2)
        assert together.composition == apart.composition
        assert together.epsilon(1e-6) == apart.epsilon(1e-6)

    def test_add_returns_a_new_accountant(self):
        empty = Accountant("add_remove")
        assert empty.add(DiscreteGaussian(1)) != empty
        assert empty.charges == ()

    def test_replace_moves_two_cells(self):
        replaced = Accountant(Neighbours.REPLACE).add(DiscreteGaussian(5), 3)
        assert replaced.composition == gaussian(5, 6).composition

    def test_import_leaves_numba_and_scipy_alone(self):
        code = (
            "import sys, trellis.privacy.accounting; print({'numba', 'scipy'} & set(sys.modules))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == "set()"


class TestBadInput:
    @pytest.mark.parametrize("delta", [0, 1, -1e-3, 2, float("nan"), float("inf"), True, "1e-5"])
    def test_delta(self, delta):
        with pytest.raises(PrivacyError, match="delta") as error:
            gaussian(5).epsilon(delta)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("epsilon", [-1e-9, float("nan"), float("inf"), None])
    def test_epsilon(self, epsilon):
        with pytest.raises(PrivacyError, match="epsilon"):
            gaussian(5).delta(epsilon)

    @pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
    def test_alpha(self, alpha):
        with pytest.raises(PrivacyError, match="alpha"):
            gaussian(5).tradeoff(alpha)

    def test_arrays_have_their_own_methods(self):
        with pytest.raises(PrivacyError, match="_curve"):
            gaussian(5).epsilon(np.array([1e-5, 1e-6]))

    def test_empty(self):
        with pytest.raises(PrivacyError, match="add a mechanism"):
            Accountant("replace").epsilon(1e-5)
        with pytest.raises(PrivacyError, match="at least one"):
            WorstCase(())

    @pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
    @pytest.mark.parametrize("field", ["count", "shift"])
    def test_counts_and_shifts(self, field, value):
        with pytest.raises(PrivacyError, match="whole number"):
            gaussian(5, **{field: value} if field == "shift" else {"count": value})

    def test_contributions(self):
        with pytest.raises(PrivacyError, match="max_contribution"):
            Accountant("replace", max_contribution=0)

    def test_relation(self):
        with pytest.raises(PrivacyError, match="add_remove, replace"):
            Accountant("bounded")

    def test_mechanism(self):
        with pytest.raises(PrivacyError, match="no law"):
            Accountant("replace").add(5)


class TestTradeoff:
    @settings(max_examples=20, deadline=None)
    @given(
        sigma_squared=st.fractions(Fraction(1, 3), 20, max_denominator=6),
        scale=st.none() | st.fractions(Fraction(1, 3), 20, max_denominator=6),
        alpha=st.floats(1e-12, 1 - 1e-6),
    )
    def test_is_enclosed(self, sigma_squared, scale, alpha):
        accountant = gaussian(sigma_squared, 2)
        if scale is not None:
            accountant = accountant.add(DiscreteLaplace(scale))
        truth = oracle.tradeoff(oracle.loss_law(accountant.composition), alpha)
        lower, upper = accountant.tradeoff_bounds(alpha)
        assert lower <= truth + 1e-60
        assert truth <= upper
        assert upper - lower <= 1e-6

    @pytest.mark.parametrize(("sigma_squared", "count"), [("1/16", 10), ("1/40", 3), ("1/8", 10)])
    def test_is_enclosed_closely_where_delta_is_nearly_1(self, sigma_squared, count):
        accountant = gaussian(sigma_squared, count)
        alphas = np.array([1e-30, 1e-20, 1e-9, 1e-3, 0.5, 0.999])
        law = oracle.loss_law(accountant.composition)
        truths = np.array([float(oracle.tradeoff(law, alpha)) for alpha in alphas])
        lower, upper = accountant.tradeoff_curve(alphas)
        assert np.all(lower <= truths)
        assert np.all(truths <= upper)
        assert np.all(upper - lower <= 0.02 * truths + 1e-12)

    def test_ends_and_shape(self):
        alphas = np.linspace(0, 1, 41)
        lower, upper = census().tradeoff_curve(alphas)
        assert lower[0] == upper[0] == 1
        assert lower[-1] == upper[-1] == 0
        assert np.all(lower <= 1 - alphas)
        slopes = np.diff(lower)
        assert np.all(slopes <= 0)
        assert all(earlier <= later + 1e-9 for earlier, later in pairwise(slopes))

    def test_upper_bound_survives_underflow(self):
        lower, upper = gaussian("1e-6").tradeoff_bounds(0.3)
        assert 0 == lower < upper < 1e-300

    def test_is_its_own_inverse(self):
        accountant = gaussian(3, 4)
        assert accountant.tradeoff(accountant.tradeoff(0.01)) == pytest.approx(0.01, abs=1e-9)
