"""The least noise that keeps a promise."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import PrivacyError
from trellis.privacy.accounting import Accountant, calibrate, calibrate_gaussian, zcdp_epsilon
from trellis.privacy.accounting.distributions.continuous import continuous_rho
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

RHO = Fraction("3.65")
SHARES = [Fraction(a, 1000) for a in (20, 274, 85, 131, 131, 238, 118, 3)]
TABLE_1 = [  # share, the paper's sigma^2, five digits of ours
    (20, "54.19", 54.194),
    (274, "4.25", 4.2454),
    (85, "13.28", 13.2831),
    (131, "8.72", 8.7188),
    (238, "4.87", 4.8732),
    (118, "9.65", 9.6478),
    (3, "343.27", 343.269),
]


def delta_of(sigma_squared, count, epsilon, neighbours="add_remove", records=1):
    accountant = Accountant(neighbours, records).add(DiscreteGaussian(sigma_squared), count)
    return accountant.delta(epsilon)


@pytest.mark.parametrize(("share", "printed", "digits"), TABLE_1)
def test_table_1(share, printed, digits):
    epsilon = zcdp_epsilon(RHO * Fraction(share, 1000), 1e-11)
    found = calibrate_gaussian(epsilon, 1e-11, count=10)
    assert f"{float(found):.2f}" == printed
    assert float(found) == pytest.approx(digits, rel=2e-5)
    assert delta_of(found, 10, epsilon) <= 1e-11


@pytest.mark.parametrize(("delta", "saved"), [(1e-10, 0.1228), (1e-11, 0.1157), (1e-5, 0.1843)])
def test_saving_on_the_whole_census(delta, saved):
    epsilon = zcdp_epsilon(RHO, delta)
    one_by_one = [share / 10 for share in SHARES for _ in range(10)]
    calibration = calibrate(epsilon, delta, [one_by_one], "add_remove")
    assert calibration.saved == pytest.approx(saved, abs=5e-5)
    assert calibration.zcdp_noise == pytest.approx(float(1 / (2 * RHO)), rel=1e-9)
    assert calibration.guarantee.delta(epsilon) <= delta
    assert calibration.mechanism(SHARES[0] / 10).sigma_squared == 10 * calibration.noise / SHARES[0]


def test_teeth():
    """More noise can be worse: a search that trusts monotony would miss 1.49985."""
    assert delta_of("1.5", 1, 5) == pytest.approx(1e-10, rel=0.14)
    assert delta_of("1.6", 1, 5) > 1.7e-10
    found = calibrate_gaussian(5, 1e-10, count=1)
    assert found < Fraction(3, 2)
    assert delta_of(found, 1, 5) <= 1e-10


@settings(max_examples=12, deadline=None)
@given(
    epsilon=st.floats(0.05, 12),
    exponent=st.floats(-20, -1),
    count=st.integers(1, 12),
    neighbours=st.sampled_from(["add_remove", "replace"]),
    records=st.integers(1, 2),
)
def test_holds_and_wastes_nothing(epsilon, exponent, count, neighbours, records):
    delta = 10.0**exponent
    found = calibrate_gaussian(epsilon, delta, count, neighbours, records)
    assert delta_of(found, count, epsilon, neighbours, records) <= delta
    assert delta_of(found * Fraction(99999, 100000), count, epsilon, neighbours, records) > delta
    assert len(str(found.numerator * 10**30 // found.denominator).strip("0")) <= 6


def test_shares_may_come_with_numbers_of_tables():
    one_by_one = calibrate(2, 1e-6, [["1/4", "1/4", "1/2"]], "replace")
    assert calibrate(2, 1e-6, [{"1/4": 2, "1/2": 1}], "replace") == one_by_one


def test_laplace_uses_delta():
    pure = calibrate(1, 1e-30, [["1/3", "2/3"]], "add_remove", kind=DiscreteLaplace)
    assert pure.noise == 1
    loose = calibrate(1, 1e-2, [["1/3", "2/3"]], "add_remove", kind=DiscreteLaplace)
    assert loose.noise < pure.noise
    assert loose.mechanism("2/3") == DiscreteLaplace(loose.noise * Fraction(3, 2))
    assert loose.guarantee.delta(1) <= Fraction(1, 100)


def test_worst_pair_of_paths_decides():
    paths = [[1], ["1/3", "2/3"], ["1/2", "1/2"]]
    together = calibrate(9, 1e-4, paths, "replace")
    alone = [calibrate(9, 1e-4, [path], "replace").noise for path in paths]
    assert len(together.guarantee.cases) == 6
    assert together.guarantee.delta(9) <= 1e-4
    assert together.noise >= max(alone)


def test_several_records():
    one = calibrate(1, 1e-8, [["1/4", "3/4"]], "replace").noise
    three = calibrate(1, 1e-8, [["1/4", "3/4"]], "replace", max_contribution=3).noise
    assert three == pytest.approx(9 * one, rel=1e-2)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 1e-5), (-1, 1e-5), (1, 0), (1, 1), (float("nan"), 0.1), (1, float("nan")), ("1", 0.1)],
)
def test_impossible_targets(epsilon, delta):
    with pytest.raises(PrivacyError, match="No noise gives"):
        calibrate_gaussian(epsilon, delta, 1)


@pytest.mark.parametrize("share", [0, -1, 0.5, "x", "1/0", None])
def test_shares(share):
    with pytest.raises(PrivacyError, match="share"):
        calibrate(1, 1e-5, [["1/2", share]], "replace")


@pytest.mark.parametrize("paths", [[], [[]], [["1/2"], []]])
def test_paths(paths):
    with pytest.raises(PrivacyError, match="at least one table"):
        calibrate(1, 1e-5, paths, "replace")


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 3.0, 200.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-10, 1e-100])
def test_the_first_guess_solves_the_continuous_problem(epsilon, delta):
    with mpmath.workdps(250):
        mu = mpmath.sqrt(2 * mpmath.mpf(continuous_rho(epsilon, delta)))
        first = mpmath.ncdf(-epsilon / mu + mu / 2)
        found = first - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
    assert float(mpmath.log(found / delta)) == pytest.approx(0, abs=1e-6)
