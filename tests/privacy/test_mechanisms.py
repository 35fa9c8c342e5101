import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from oracles.samplers import gaussian, laplace, weights
from seeded_bits import SeededBits
from trellis.errors import PrivacyError
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, mechanism

KINDS = [DiscreteGaussian, DiscreteLaplace]
positive_fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=10**9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given_as", "exact"),
    [
        (5, Fraction(5)),
        (np.int64(7), Fraction(7)),
        (Fraction(10, 73), Fraction(10, 73)),
        (Fraction(np.int64(3), np.int64(4)), Fraction(3, 4)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("5", Fraction(5)),
        ("68.49", Fraction(6849, 100)),
        ("1e3", Fraction(1000)),
        ("1E-3", Fraction(1, 1000)),
        ("10/73", Fraction(10, 73)),
        ("0." + "3" * 500, Fraction(int("3" * 500), 10**500)),
        (2**50, Fraction(2**50)),
        ("1e-300", Fraction(1, 10**300)),
    ],
)
def test_parameters_are_exact(kind, given_as, exact):
    law = kind(given_as)
    assert law.parameter == exact
    assert type(law.parameter.numerator) is type(law.parameter.denominator) is int


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5.0, "is a float, which is not exact"),
        (float("nan"), "is a float, which is not exact"),
        (np.float32(2), "is a float, which is not exact"),
        (True, "not an exact number"),
        (None, "not an exact number"),
        (1j, "not an exact number"),
        ([5], "not an exact number"),
        ("", "not an exact number"),
        ("five", "not an exact number"),
        ("0.1\n2", "not an exact number"),
        ("1/0", "not an exact number"),
        ("1e2/3", "not an exact number"),
        ("nan", "not an exact number"),
        ("Infinity", "not an exact number"),
        (Decimal("NaN"), "not an exact number"),
        ("1e999999999", "far too large or small"),
        ("1e-999999999", "far too large or small"),
        (0, "is not positive"),
        ("-0", "is not positive"),
        (-3, "is not positive"),
        ("-1/3", "is not positive"),
        pytest.param(-(10**5000), "is not positive", id="very negative"),
        ("1e-301", "outside"),
        (2**101, "outside"),
        pytest.param(10**5000, "outside", id="very large"),
        (Fraction(10**5000, 3), "outside"),
    ],
)
def test_other_parameters_are_refused(kind, value, message):
    with pytest.raises(PrivacyError, match=message) as refused:
        kind(value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("kind", "largest"), [(DiscreteGaussian, 2**100), (DiscreteLaplace, 2**50)]
)
def test_noise_that_might_outgrow_64_bits_is_refused(kind, largest):
    spread = np.abs(kind(largest).sample(2000, SeededBits(3)))
    assert 2**47 < np.median(spread) < spread.max() < 2**56
    with pytest.raises(PrivacyError, match="64-bit"):
        kind(largest + Fraction(1, 10))


@pytest.mark.parametrize("whole", [-1, 0.5, 1.0, "1", True, None, Fraction(1, 2)])
def test_counts_and_sensitivities_are_whole(whole):
    for priced in (
        DiscreteGaussian(5).rho,
        DiscreteGaussian(5).sample,
        DiscreteLaplace(5).epsilon,
        DiscreteLaplace(5).rho,
        DiscreteLaplace(5).sample,
    ):
        with pytest.raises(PrivacyError, match="is not a whole number"):
            priced(whole)


@given(parameter=positive_fractions, sensitivity=st.integers(0, 10**20))
def test_prices_are_exact(parameter, sensitivity):
    rho = DiscreteGaussian(parameter).rho(sensitivity)
    assert isinstance(rho, Fraction)
    assert rho * 2 * parameter == sensitivity
    laplace_law = DiscreteLaplace(parameter)
    assert laplace_law.epsilon(sensitivity) * parameter == sensitivity
    assert laplace_law.rho(sensitivity**2) == laplace_law.epsilon(sensitivity) ** 2 / 2
    assert laplace_law.rho(sensitivity) * 2 * parameter**2 == sensitivity


@given(parameter=positive_fractions, kind=st.sampled_from(KINDS))
def test_a_mechanism_survives_text_and_pickle(parameter, kind):
    law = kind(parameter)
    assert mechanism(law.name, str(law.parameter)) == law
    assert pickle.loads(pickle.dumps(law)) == law
    assert hash(kind(parameter)) == hash(law)


def test_names():
    assert DiscreteGaussian.name == DiscreteGaussian(1).name == "discrete_gaussian"
    assert DiscreteLaplace.name == DiscreteLaplace(1).name == "discrete_laplace"
    with pytest.raises(PrivacyError, match="discrete_gaussian, discrete_laplace"):
        mechanism("gaussian", 5)


def test_values_do_not_change():
    law = DiscreteGaussian(5)
    with pytest.raises(FrozenInstanceError):
        law.sigma_squared = Fraction(6)
    assert replace(law, sigma_squared="6.5") == DiscreteGaussian("13/2")


def brute_force_variance(decay) -> float:
    half = weights(decay)
    second_moment = 2 * mp.fsum(m * m * w for m, w in enumerate(half))
    return second_moment / (2 * mp.fsum(half) - 1)


@pytest.mark.parametrize(
    "sigma_squared",
    ["1/1000", "1/700", "0.05", "10/73", "0.499", "1/2", "0.501", "1", "2.3", "5", "68.49", "456"],
)
def test_variance_of_discrete_gaussian(sigma_squared):
    exact = brute_force_variance(gaussian(sigma_squared))
    assert abs(DiscreteGaussian(sigma_squared).variance / exact - 1) < 2e-15


@pytest.mark.parametrize("scale", ["1/500", "1/70", "0.1", "10/73", "1/2", "1", "37/3", "100"])
def test_variance_of_discrete_laplace(scale):
    exact = brute_force_variance(laplace(scale))
    assert abs(DiscreteLaplace(scale).variance / exact - 1) < 2e-15


def test_variance_at_the_ends_of_the_range():
    assert DiscreteGaussian("1e-300").variance == DiscreteLaplace("1e-300").variance == 0
    assert DiscreteGaussian(2**100).variance == 2.0**100
    assert DiscreteLaplace(2**50).variance == pytest.approx(2.0**101, rel=1e-15)


@given(sigma_squared=st.fractions(Fraction(1, 10), 100))
def test_variance_is_positive_and_below_sigma_squared(sigma_squared):
    assert 0 < DiscreteGaussian(sigma_squared).variance <= float(sigma_squared)


def test_prices_need_neither_numba_nor_scipy():
    script = """
import sys
from trellis.privacy.mechanisms import mechanism
mechanism("discrete_gaussian", "68.49").rho(2)
assert not {"numba", "scipy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
