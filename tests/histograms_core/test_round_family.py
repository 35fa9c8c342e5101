import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.histogram_family import least_largest_shift, least_rounding, rounding_objective
from trellis.errors import StructureError
from trellis.estimate import round_family
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.queries import stacked_queries
from trellis.model import Schema
from trellis.model.tables.queries import parse_query
from trellis.numerics.histograms.whole_numbers.weighted_queries import (
    move_cost,
    residuals,
    shared_weight,
)

SCHEMA = Schema({"a": list("1234"), "b": ["x", "y", "z"]})
QUERIES = ["total", "a", "b", "detailed"]


def real_children(rng, n_children, schema=SCHEMA):
    x = rng.gamma(0.7, 2, (n_children, schema.n_cells)) + 1e-3
    parent = np.ceil(x.sum(axis=0))
    return x * (parent / x.sum(axis=0)), parent.astype(np.int64)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_children=st.integers(1, 7))
def test_sums_are_kept_and_counts_move_by_less_than_one(seed, n_children):
    x, parent = real_children(np.random.default_rng(seed), n_children)
    y = round_family(SCHEMA, parent, x, QUERIES)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y.sum(axis=0), parent)
    assert np.abs(y - x).max() < 1 + 1e-6
    assert y.min() >= 0


def test_objective_is_near_that_of_an_integer_program():
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(12):
        x, parent = real_children(rng, 4)
        names = ["a", "detailed"]
        maps = [parse_query(SCHEMA, name).cell_of for name in names]
        best, _ = least_rounding(maps, x.T, parent)
        y = round_family(SCHEMA, parent, x, names)
        ratios.append(rounding_objective(maps, x.T, y.T) / best)
    assert np.mean(ratios) < 1.03
    assert max(ratios) < 1.15


def test_coarse_marginals_hardly_shift():
    schema = Schema({"a": [str(i) for i in range(40)], "b": ["x", "y", "z"]})
    x, parent = real_children(np.random.default_rng(4), 20, schema)
    y = round_family(schema, parent, x, QUERIES)
    for name in QUERIES:
        assert np.abs(parse_query(schema, name).answer(y - x)).mean() < 0.5


def largest_shift(schema, queries, x, y):
    return max(np.abs(parse_query(schema, name).answer(y - x)).mean() for name in queries)


@pytest.mark.parametrize("n_children", [3, 4, 8])
def test_no_marginal_shifts_by_more_than_half_in_the_mean(n_children):
    schema = Schema({"a": list("123456"), "b": list("xy"), "c": list("uvw")})
    queries = ["total", "a", "b", "c", "a * b", "b * c", "detailed"]
    for seed in range(25):
        x, parent = real_children(np.random.default_rng(seed), n_children, schema)
        y = round_family(schema, parent, x, queries)
        assert largest_shift(schema, queries, x, y) <= 0.5


def test_the_least_largest_shift_is_not_far_even_if_it_is_above_half():
    """Halves in every cell of two children: some answers must move by a half or more."""
    rng = np.random.default_rng(7)
    maps = [parse_query(SCHEMA, name).cell_of for name in QUERIES]
    for _ in range(6):
        x = rng.integers(0, 3, (2, SCHEMA.n_cells)) + 0.5 + rng.uniform(-0.01, 0.01, (1, 12))
        x[1] = np.ceil(x.sum(axis=0)) - x[0]
        parent = x.sum(axis=0).round().astype(np.int64)
        y = round_family(SCHEMA, parent, x, QUERIES)
        least = least_largest_shift(maps, x.T, parent)
        assert least - 1e-6 <= largest_shift(SCHEMA, QUERIES, x, y) <= max(0.5, 1.1 * least)


def test_the_cost_of_a_move_is_what_it_adds_to_the_squared_residuals():
    rng = np.random.default_rng(8)
    x, _ = real_children(rng, 3)
    y = np.floor(x).astype(np.int64)
    names = ["a", "b", "detailed"]
    weights = np.array([1.0, 2.5, 4.0])
    queries = stacked_queries([parse_query(SCHEMA, n) for n in names], weights, np.arange(12))

    def objective(whole):
        answers = [parse_query(SCHEMA, n).answer(whole - x) for n in names]
        return sum(w * (e**2).sum() for w, e in zip(weights, answers, strict=True))

    moved = y.copy()
    for j, giver, taker in ((0, 1, 2), (5, 0, 1), (11, 2, 0)):
        e = residuals(queries, np.ascontiguousarray(x.T), np.ascontiguousarray(moved.T))
        cost = move_cost(queries, e, j, giver, taker)
        before = objective(moved)
        moved[giver, j] -= 1
        moved[taker, j] += 1
        assert 2 * cost == pytest.approx(objective(moved) - before)
    assert shared_weight(queries, 0, 1) == 1.0  # the same a
    assert shared_weight(queries, 0, 3) == 2.5  # the same b
    assert shared_weight(queries, 4, 4) == 7.5


def test_whole_children_stay_and_others_are_first_made_to_add_up():
    x = np.arange(24.0).reshape(2, 12)
    np.testing.assert_array_equal(round_family(SCHEMA, x.sum(axis=0), x, QUERIES), x)
    wrong = np.full((3, 12), -2.5)
    wrong[1] = 900
    y = round_family(SCHEMA, np.arange(12), wrong, QUERIES)
    np.testing.assert_array_equal(y.sum(axis=0), np.arange(12))
    assert y.min() >= 0


def test_ties_depend_on_the_seed_alone():
    x = np.full((3, 12), 1 / 3)
    parent = np.ones(12, dtype=int)
    first, again = (round_family(SCHEMA, parent, x, QUERIES, tie_seed=5) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    others = [round_family(SCHEMA, parent, x, QUERIES, tie_seed=s) for s in range(20)]
    assert any((other != first).any() for other in others)
    mean = np.mean(others, axis=0)
    assert 0 < mean.min() <= mean.max() < 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_children=st.integers(2, 6), grouped=st.booleans())
def test_bounds_are_kept(seed, n_children, grouped):
    """Any real children: a table of whole numbers exists, and one must be found."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, (n_children, SCHEMA.n_cells))
    parent = truth.sum(axis=0)
    x, _ = real_children(rng, n_children)
    a = parse_query(SCHEMA, "a").answer(truth).astype(float)
    totals = truth.sum(axis=1, keepdims=True).astype(float)
    impossible = (truth == 0) & (rng.random(truth.shape) < 0.5)
    bounds = [FamilyBound("a", a - rng.integers(0, 2), a + rng.integers(0, 2))]
    if grouped:
        both = totals[:2].sum(axis=0, keepdims=True)
        of = np.where(np.arange(n_children) < 2, 0, -1)
        bounds.append(FamilyBound("total", both, both, of))
    else:
        bounds.append(FamilyBound("total", totals, totals))
    y = round_family(SCHEMA, parent, x, QUERIES, bounds=bounds, impossible=impossible)
    np.testing.assert_array_equal(y.sum(axis=0), parent)
    assert y.min() >= 0
    assert not y[impossible].any()
    answer = parse_query(SCHEMA, "a").answer(y)
    assert (bounds[0].lower <= answer).all()
    assert (answer <= bounds[0].upper).all()
    if grouped:
        assert y[:2].sum() == totals[:2].sum()
    else:
        np.testing.assert_array_equal(y.sum(axis=1), totals.ravel())


def test_without_queries_remainders_alone_decide():
    rng = np.random.default_rng(4)
    parent = rng.integers(0, 30, 12)
    x = rng.dirichlet(np.ones(5), 12).T * parent
    y = round_family(SCHEMA, parent, x, [])
    np.testing.assert_array_equal(y.sum(axis=0), parent)
    for cell in range(12):
        up = np.argsort(x[:, cell] % 1)[::-1][: parent[cell] - int(np.floor(x[:, cell]).sum())]
        expected = np.floor(x[:, cell])
        expected[up] += 1
        np.testing.assert_array_equal(y[:, cell], expected)
    assert not round_family(SCHEMA, np.zeros(12, int), x, []).any()


def test_degenerate_families():
    assert not round_family(SCHEMA, np.zeros(12, int), np.ones((2, 12)), QUERIES).any()
    only = round_family(SCHEMA, np.arange(12), np.zeros((1, 12)), QUERIES)
    np.testing.assert_array_equal(only, [np.arange(12)])


@pytest.mark.parametrize(
    ("children", "message"),
    [
        (np.zeros((2, 5)), "12 cells"),
        (np.zeros((0, 12)), "12 cells"),
        (np.full((2, 12), np.nan), "finite"),
        (np.full((2, 12), 1e300), "at most 2.50"),
        ([["some"] * 12], "numbers"),
    ],
)
def test_bad_children_are_refused(children, message):
    with pytest.raises(StructureError, match=message):
        round_family(SCHEMA, np.ones(12, int), children, QUERIES)
