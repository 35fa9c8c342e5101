"""Intervals: what rounding does to them, and what they promise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seeded_bits import SeededBits
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.release.tables.intervals import interval

numbers = st.floats(-50, 500, allow_nan=False)


@given(centre=numbers, error=st.floats(0, 20), count=st.integers(0, 500))
def test_an_interval_holds_the_whole_numbers_within_its_half_width_and_a_half(centre, error, count):
    reach = 1.5 * error + 0.5
    near = [n for n in range(-100, 600) if abs(n - centre) <= reach]
    assume(all(abs(abs(n - centre) - reach) > 1e-9 for n in (min(near) - 1, *near, max(near) + 1)))
    ends = interval(np.array([count]), np.array([centre]), np.array([error]), 1.5)
    assert ends[0][0] == min(max(min(near), 0), count)
    assert ends[1][0] == max(max(near), 0, count)


def test_an_exact_count_has_an_interval_of_one_number():
    for centre in (7.0, 7 - 1e-12, 7 + 1e-12):
        lower, upper = interval(np.array([7]), np.array([centre]), np.array([0.0]), 1.645)
        assert (lower[0], upper[0]) == (7, 7)


@pytest.mark.parametrize("sigma_squared", ["1/20", "1/2", "1", "15/8", "7", "200"])
def test_one_measurement_alone_is_covered(sigma_squared):
    """The hardest case: noise in whole steps. False alarms: below 1e-6 each (five sigma)."""
    law = DiscreteGaussian(Fraction(sigma_squared))
    truth = np.full(40_000, 1000)
    centre = truth + law.sample(truth.size, SeededBits(5)).astype(float)
    lower, upper = interval(
        centre.astype(int), centre, np.full(truth.size, law.variance**0.5), 1.645
    )
    inside = ((lower <= truth) & (truth <= upper)).mean()
    assert inside > 0.9 - 5 * (0.09 / truth.size) ** 0.5
