from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles.group_sizes import isotonic_by_means, least_isotonic_objective
from trellis.errors import StructureError
from trellis.estimate.group_sizes import isotonic
from trellis.numerics.group_sizes.isotonic import isotonic_whole_rows
from trellis.numerics.ties import tie_key

compiled = settings(deadline=None)  # the first example may compile
ROWS = st.lists(st.one_of(st.integers(-9, 9), st.floats(-1e6, 1e6)), max_size=12)


@compiled
@given(ROWS)
def test_matches_the_formula_of_means(values):
    np.testing.assert_allclose(isotonic(values), isotonic_by_means(values), rtol=1e-9, atol=1e-6)


@compiled
@given(ROWS)
def test_is_a_projection(values):
    fitted = isotonic(values)
    assert np.all(np.diff(fitted) >= 0)
    np.testing.assert_allclose(isotonic(fitted), fitted, rtol=1e-12)
    assert np.array_equal(isotonic(sorted(values)), np.array(sorted(values), dtype=float))
    np.testing.assert_allclose(fitted.sum(), np.sum(values), rtol=1e-9, atol=1e-6)


def test_rows_are_fitted_one_by_one():
    values = np.random.default_rng(1).normal(size=(5, 30))
    fitted = isotonic(values)
    assert fitted.shape == values.shape
    for row, expected in zip(fitted, values, strict=True):
        assert np.array_equal(row, isotonic(expected))


def test_a_long_row_takes_linear_time():
    falling = -np.arange(300_000.0)
    np.testing.assert_allclose(isotonic(falling), falling.mean(), rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, nan], "NaN"),
        ([1, inf], "NaN, infinity"),
        ([1, 1e200], "1e100"),
        (3, "sequence of numbers"),
        ([[[1]]], "sequence of numbers"),
        ([[1], [1, 2]], "sequence of numbers"),
        (["a"], "sequence of numbers"),
    ],
)
def test_bad_input_is_refused_in_one_line(values, message):
    with pytest.raises(StructureError, match=message) as caught:
        isotonic(values)
    assert "\n" not in str(caught.value)


# -- whole rows -----------------------------------------------------------------------------------


def whole_row(values, high: int, seed: int = 0) -> list[int]:
    rows = np.array([values], dtype=np.int64).reshape(1, -1)
    out = np.empty_like(rows)
    isotonic_whole_rows(rows, np.array([high]), tie_key(seed), 0, out)
    return out[0].tolist()


@compiled
@example([2, 1, 2, 1] * 8, 2)  # halves that must go the same way
@given(st.lists(st.integers(-8, 14), max_size=9), st.integers(0, 10))
def test_whole_rows_are_optimal(values, high):
    fitted = whole_row(values, high)
    assert fitted == sorted(fitted)
    assert all(0 <= level <= high for level in fitted)
    cost = sum((a - b) ** 2 for a, b in zip(fitted, values, strict=True))
    assert cost == least_isotonic_objective(values, high)


def test_halves_go_either_way():
    ups = sum(whole_row([3, 2], 9, seed)[0] == 3 for seed in range(2000))
    assert abs(ups - 1000) < 112  # 5 standard errors; fixed seeds, no false alarms
