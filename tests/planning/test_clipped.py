"""Closed forms of clipped noise against sums and integrals."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.clipped import clipped_moments
from trellis.errors import InputError
from trellis.planning.budget import clipped_bias, clipped_mse, clipped_variance
from trellis.planning.budget.clipped import clipped_mse_slope
from trellis.privacy.mechanisms import mechanism

KINDS = ("laplace", "discrete_laplace", "gaussian", "discrete_gaussian")

kinds = st.sampled_from(KINDS)
parameters = st.floats(1e-3, 1e12)
counts = st.integers(0, 10**7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameter", [0.05, 0.5, 1.0, 3.7, 40.0])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 60])
def test_matches_the_definition(kind, parameter, count):
    bias, mse = clipped_moments(kind, parameter, count)
    assert clipped_bias(kind, parameter, [count])[0] == pytest.approx(bias, rel=1e-10, abs=1e-35)
    assert clipped_mse(kind, parameter, [count])[0] == pytest.approx(mse, rel=1e-12)
    assert clipped_variance(kind, parameter, [count])[0] == pytest.approx(mse - bias**2, rel=1e-11)


@pytest.mark.parametrize("sigma", [1001.0, 1500.0])
@pytest.mark.parametrize("count", [0, 1, 900, 3000, 20_000])
def test_wide_discrete_gaussian_matches_the_sum(sigma, count):
    z = np.arange(-40 * int(sigma), 40 * int(sigma) + 1, dtype=np.longdouble)
    weight = np.exp(-z * z / 2 / np.longdouble(sigma) ** 2)
    error = np.maximum(-count, z)
    bias = float((weight * error)[z < -count].sum() - (weight * z)[z < -count].sum())
    bias, total = bias / float(weight.sum()), float(weight.sum())
    mse = float((weight * error**2).sum()) / total
    found = clipped_mse("discrete_gaussian", sigma**2, [count])[0]
    assert found == pytest.approx(mse, rel=1e-11)
    found = clipped_bias("discrete_gaussian", sigma**2, [count])[0]
    assert found == pytest.approx(bias, rel=1e-9)


@given(kinds, parameters, counts)
def test_slope_is_the_derivative(kind, parameter, count):
    step = 1e-5 * parameter
    high, low = (clipped_mse(kind, parameter + s, [count])[0] for s in (step, -step))
    slope = clipped_mse_slope(kind, parameter, [count])[0]
    allowed = 1e-5 * clipped_mse(kind, parameter, [count])[0] / parameter
    assert slope == pytest.approx((high - low) / (2 * step), rel=1e-4, abs=allowed)


@given(st.floats(1e-9, 1e9), counts)
def test_bounds_of_proposition_4(epsilon, count):
    mse = clipped_mse("laplace", 1 / epsilon, [count])[0] * epsilon**2
    assert 1 - 1e-12 <= mse <= 2 + 1e-12
    if count * epsilon < 30:
        assert mse < 2


@given(kinds, parameters, st.lists(counts, min_size=2, max_size=6))
def test_error_grows_and_bias_falls_with_the_count(kind, parameter, values):
    ordered = np.sort(values)
    mse, bias = clipped_mse(kind, parameter, ordered), clipped_bias(kind, parameter, ordered)
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(mse))
    assert all(a * (1 + 1e-9) >= b >= 0 for a, b in pairwise(bias))
    assert (clipped_variance(kind, parameter, ordered) >= 0).all()


@given(kinds, parameters, st.lists(counts, min_size=2, max_size=6))
def test_bias_is_least_when_siblings_are_equal(kind, parameter, values):
    """Theorem 4, on whole numbers: taking one from the largest for the smallest never hurts."""
    evened = np.sort(values)
    if evened[-1] - evened[0] < 2:
        return
    before = clipped_bias(kind, parameter, evened).sum()
    evened[0] += 1
    evened[-1] -= 1
    assert clipped_bias(kind, parameter, evened).sum() <= before * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameter", [1e-300, 1e-6, 1.0, 1e6, 1e30, Fraction(1, 3)])
def test_no_overflow_and_no_nan(kind, parameter):
    values = [0, 1, 10, 2**40, 2**62]
    for function in (clipped_mse, clipped_bias, clipped_variance, clipped_mse_slope):
        found = function(kind, parameter, values)
        assert np.isfinite(found).all()
        assert (found >= 0).all()


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("parameter", [Fraction(1, 4), Fraction(7), Fraction(10**5)])
def test_large_counts_have_the_variance_of_the_noise(kind, parameter):
    variance = mechanism(kind, parameter).variance
    assert clipped_mse(kind, parameter, [10**9])[0] == pytest.approx(variance, rel=1e-12)


def test_shapes_are_kept():
    assert clipped_mse("laplace", 1, []).shape == (0,)
    assert clipped_mse("gaussian", 1, 3).shape == ()
    assert clipped_mse("gaussian", 1, [[1, 2], [3, 4]]).shape == (2, 2)


@pytest.mark.parametrize(
    ("kind", "parameter", "values", "words"),
    [
        ("cauchy", 1, [1], "laplace, discrete_laplace"),
        ("laplace", 0, [1], "positive"),
        ("laplace", float("nan"), [1], "positive"),
        ("laplace", 1, [-1], "at least zero"),
        ("laplace", 1, [0.5], "whole"),
        ("laplace", 1, ["1"], "whole"),
        ("laplace", 1, [float("inf")], "whole"),
    ],
)
def test_bad_input_is_refused(kind, parameter, values, words):
    with pytest.raises(InputError, match=words):
        clipped_mse(kind, parameter, values)
