"""Money shared out by counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import InputError
from trellis.planning.budget.downstream import (
    WEIGHT_FUNCTIONS,
    downstream_errors,
    shares_of_money,
)

counts = st.lists(st.integers(0, 10**6), min_size=1, max_size=8)
functions = st.sampled_from(list(WEIGHT_FUNCTIONS))


@given(counts, functions)
def test_shares_sum_to_one_and_follow_the_counts(values, weights):
    shares = shares_of_money(values, weights)
    assert shares.sum() == pytest.approx(1)
    order = np.argsort(values)
    assert (np.diff(shares[order]) >= -1e-12).all()


def test_the_three_functions():
    assert shares_of_money([1, 3], "linear").tolist() == [0.25, 0.75]
    assert shares_of_money([1, 3], "quadratic").tolist() == pytest.approx([0.1, 0.9])
    log = np.log([1.25, 1.75])
    assert shares_of_money([1, 3], "logarithmic").tolist() == pytest.approx(log / log.sum())
    assert shares_of_money([0, 0], "quadratic").tolist() == [0.5, 0.5]


@given(counts, functions, st.integers(1, 4))
def test_true_releases_make_no_error(values, weights, n):
    errors = downstream_errors(values, [values] * n, weights)
    assert (errors.bias_squared, errors.variance, errors.misallocated) == pytest.approx((0, 0, 0))


def test_bias_variance_and_misallocation_by_hand():
    errors = downstream_errors([1, 1], [[3, 1], [1, 1]], "linear")
    assert errors.bias_squared == pytest.approx(2 * 0.125**2)
    assert errors.variance == pytest.approx(2 * 0.125**2)
    assert errors.misallocated == pytest.approx(0.125)


@pytest.mark.parametrize(
    "arguments",
    [([], [[]], "linear"), ([1], [], "linear"), ([1, 2], [[1]], "linear"), ([-1], [[1]], "linear"),
     ([1], [[1]], "cubic")],
)  # fmt: skip
def test_bad_input_is_refused(arguments):
    with pytest.raises(InputError):
        downstream_errors(*arguments)
