from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import SpecError
from trellis.model.plans.shares import Shares

LEVELS = ("nation", "state", "county", "block")
MEASURABLE = LEVELS[1:]


def test_uniform_shares_go_to_the_levels_that_are_measured():
    assert Shares().over(LEVELS, MEASURABLE) == dict.fromkeys(MEASURABLE, Fraction(1, 3))


def test_fractions_are_taken_as_they_are_in_the_order_of_levels():
    wish = {"block": Fraction(7, 10), "state": Fraction(3, 10)}
    shares = Shares(wish).over(LEVELS, MEASURABLE)
    assert list(shares.items()) == [("state", Fraction(3, 10)), ("block", Fraction(7, 10))]


positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


@given(weights=st.dictionaries(st.sampled_from(MEASURABLE), positive, min_size=1))
def test_weights_are_scaled_to_sum_to_exactly_one(weights):
    shares = Shares(weights, are_weights=True).over(LEVELS, MEASURABLE)
    assert sum(shares.values()) == 1
    assert shares.keys() == weights.keys()
    ratios = {shares[level] / weights[level] for level in weights}
    assert len(ratios) == 1


@pytest.mark.parametrize("are_weights", [False, True])
@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"county": 1, "blok": 1}, "names level 'blok'; the hierarchy has nation, state"),
        ({"nation": Fraction(1, 2), "block": Fraction(1, 2)}, "level 'nation' is wasted"),
        ({"state": Fraction(0), "block": Fraction(1)}, "'state' must be positive"),
        ({"state": Fraction(-1, 2), "block": Fraction(3, 2)}, "'state' must be positive"),
    ],
)
def test_shares_that_make_no_sense_are_refused(wish, message, are_weights):
    with pytest.raises(SpecError, match=message):
        Shares(wish, are_weights).over(LEVELS, MEASURABLE)


@pytest.mark.parametrize("last", [Fraction(2, 3) - Fraction(1, 10**30), Fraction(2, 3) + 1])
def test_fractions_must_sum_to_exactly_one(last):
    wish = {"state": Fraction(1, 3), "block": last}
    with pytest.raises(SpecError, match="not to 1"):
        Shares(wish).over(LEVELS, MEASURABLE)
    assert sum(Shares(wish, are_weights=True).over(LEVELS, MEASURABLE).values()) == 1
