"""The Chebyshev projection: optimal, whole, in the published order, and exact beyond floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.chebyshev import cheapest_support, least_distance, take_one_by_one
from trellis.errors import StructureError
from trellis.estimate import project_chebyshev, project_chebyshev_families
from trellis.numerics.projection.sparse_support import keep_largest
from trellis.numerics.ties import tie_key

ORDERS = ("ascending", "descending")
families = st.lists(st.integers(-30, 30), min_size=1, max_size=8)
totals = st.integers(0, 60)


def random_families(count: int, seed: int = 1):
    """Of all kinds: single children, all negative, all zero, totals of zero, near and far."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        size = 1 if i % 10 == 0 else int(rng.integers(1, 13))
        low, high = [(-20, 20), (-20, 0), (0, 1), (-3, 40), (-200, 200)][i % 5]
        x = rng.integers(low, high, size).tolist()
        total = 0 if i % 7 == 0 else int(rng.integers(0, max(1, 2 * sum(map(abs, x)) + 3)))
        yield x, total


@pytest.mark.parametrize("order", ORDERS)
def test_optimal_in_five_thousand_families(order):
    for x, total in random_families(5000):
        y = project_chebyshev(x, total, order)
        assert y.sum() == total
        assert (y >= 0).all()
        assert np.abs(y - np.array(x)).max() == least_distance(x, total)


@given(families, totals, st.sampled_from(ORDERS), st.integers(0, 99))
def test_takes_in_the_published_order(x, total, order, seed):
    y = project_chebyshev(x, total, order, tie_seed=seed)
    slow = take_one_by_one(x, total, descending=order == "descending", seed=seed)
    assert y.tolist() == slow


@given(st.lists(st.tuples(families, totals), min_size=1, max_size=6), st.sampled_from(ORDERS))
def test_families_and_slices_give_what_single_ones_give(cases, order):
    x = np.concatenate([f for f, _ in cases])
    start = np.cumsum([0, *(len(f) for f, _ in cases)])
    sums = [total for _, total in cases]
    whole = project_chebyshev_families(x, start, sums, order, tie_seed=3)
    for i, (family, total) in enumerate(cases):
        lo, hi = start[i], start[i + 1]
        alone = project_chebyshev_families(
            family, [0, len(family)], [total], order, tie_seed=3, first_index=lo
        )
        assert whole[lo:hi].tolist() == alone.tolist()


@pytest.mark.parametrize("shift", [2**40, 2**54, 2**58])
def test_exact_beyond_the_integers_of_floats(shift):
    x = [shift + 1, shift + 3, -7, 5]
    total = 2 * shift - 1
    y = project_chebyshev(x, total)
    assert int(y.sum()) == total
    assert y.tolist() == take_one_by_one(x, total)


def test_a_large_family_is_optimal():
    x = np.random.default_rng(0).integers(-60, 60, 100_000)
    for total in (0, 1, 12345, 5_000_000):
        y = project_chebyshev(x, total)
        t = int(np.abs(y - x).max())
        assert y.sum() == total
        assert t == 0 or not (
            (x + t - 1).min() >= 0 and np.maximum(x - t + 1, 0).sum() <= total <= (x + t - 1).sum()
        ), "a smaller distance is possible"


def test_equal_values_do_not_favour_the_first():
    """One unit too much among equals: which child gives it depends on the seed alone."""
    given_up = [int(np.argmin(project_chebyshev([5] * 10, 49, tie_seed=s))) for s in range(40)]
    assert len(set(given_up)) > 5


def test_ascending_has_fewer_false_positives_than_descending():
    x = [3, 2, 4, 1, 50, 60]
    up, down = (project_chebyshev(x, 106, order) for order in ORDERS)
    assert (up > 0).sum() < (down > 0).sum()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([1, 2], 3, "sideways"), "order"),
        (([1.5, 2], 3), "whole"),
        (([1, 2], -1), "negative"),
        (([], 1), "no child"),
        (([2**61, 2**61], 5), "exceeds"),
        (([[1, 2]], 5), "flat"),
    ],
)
def test_bad_input_is_refused(args, message):
    with pytest.raises(StructureError, match=message):
        project_chebyshev(*args)


def test_empty_families():
    assert project_chebyshev([], 0).size == 0
    assert project_chebyshev_families([5, 1], [0, 0, 2, 2], [0, 4, 0]).tolist() == [4, 0]


@given(families, st.integers(1, 60), st.floats(0, 500))
def test_the_kept_support_is_the_cheapest(x, total, price):
    kept = np.empty(len(x), dtype=np.bool_)
    start = np.array([0, len(x)])
    values, price_of = np.array(x), np.array([price])
    keep_largest(values, start, np.array([total]), price_of, tie_key(0), 0, kept, 0, 1)
    cost = (values[~kept] ** 2).sum() + (total - values[kept].sum()) ** 2 / kept.sum()
    assert cost + price * kept.sum() == pytest.approx(cheapest_support(x, total, price), abs=1e-6)


def test_nothing_is_kept_of_nothing():
    kept = np.ones(3, dtype=np.bool_)
    family = np.array([9, 9, 9]), np.array([0, 3]), np.array([0])
    keep_largest(*family, np.ones(1), tie_key(0), 0, kept, 0, 1)
    assert not kept.any()
