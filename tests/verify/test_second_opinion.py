"""The slow calculator of verification agrees with the accountant, and notices one that errs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.mechanisms import mechanism
from trellis.verify.plan.second_opinion import Moved, delta, losses

LAWS = st.sampled_from(["discrete_gaussian", "discrete_laplace"])
PARTS = st.lists(
    st.tuples(LAWS, st.sampled_from(["1/2", "1", "3/2", "4", "15/2"]), st.integers(1, 3)),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=60)
@given(PARTS, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_both_calculators_agree(parts, epsilon):
    moved = [Moved(law, Fraction(parameter), distance) for law, parameter, distance in parts]
    coordinates = [Coordinates(mechanism(m.law, str(m.parameter)), 1, m.distance) for m in moved]
    found = losses(moved)
    assert found is not None
    expected = WorstCase((Composition.of(coordinates),), True).delta(Fraction(epsilon))
    assert delta(found, epsilon) == pytest.approx(float(expected), rel=1e-6, abs=1e-13)


def test_what_is_too_large_is_left_out():
    assert losses([Moved("discrete_gaussian", Fraction(10**9), 1)]) is None
    assert losses([Moved("discrete_gaussian", Fraction(1), 1)] * 500) is None
    odd = [Moved("discrete_gaussian", Fraction(10**6 + i, 10**6 - i), 1) for i in (1, 3, 7, 9)]
    assert losses(odd) is None
