"""Programs (6) and (7): optimal, as fast as promised elsewhere, and safe on odd input."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.allocation import general_allocate, laplace_total
from strategies import hierarchies
from trellis.errors import InputError
from trellis.planning.budget import allocate, clipped_bias, clipped_mse, least_budget, split_budget
from trellis.planning.budget.allocation import ClippedErrors, LevelCounts

KINDS = ("laplace", "discrete_laplace", "gaussian", "discrete_gaussian")

levels_of_counts = st.lists(
    st.lists(st.integers(0, 200) | st.integers(0, 10**6), min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)
budgets = st.floats(0.05, 20)


@settings(deadline=None, max_examples=40)
@given(levels_of_counts, budgets, st.data())
def test_as_good_as_a_general_solver(levels, total, data):
    n = len(levels)
    weights = data.draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n))
    found = allocate(levels, total, weights)
    assert found.sum() == pytest.approx(total, rel=1e-12)
    least = general_allocate(levels, total, weights)
    assert laplace_total(levels, found, weights) <= least * (1 + 1e-6)


@given(levels_of_counts, st.floats(1e-3, 1e6), st.data())
def test_least_budget_undoes_allocate(levels, tau, data):
    n = len(levels)
    weights = data.draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n))
    least = least_budget(levels, tau, weights)
    assert laplace_total(levels, least, weights) == pytest.approx(tau, rel=1e-8)
    again = allocate(levels, least.sum(), weights)
    np.testing.assert_allclose(again, least, rtol=1e-6)


@given(hierarchies(), st.floats(0.01, 10), st.data())
def test_theorem_3_shares_grow_with_depth(tree, total, data):
    n = tree.sizes[-1]
    leaves = data.draw(st.lists(st.integers(0, 1000), min_size=n, max_size=n))
    shares = allocate(tree.sum_up(np.array(leaves)), total)
    assert all(upper <= lower * (1 + 1e-9) for upper, lower in pairwise(shares))


@given(st.sampled_from(KINDS), levels_of_counts, budgets)
def test_every_law_spends_until_gains_are_equal(kind, levels, total):
    """Moving a little of the budget between any two levels does not lower the error."""
    found = split_budget(kind, 1.0, levels, total)
    errors = ClippedErrors.of(kind, 1.0, levels, None)
    reached = errors.total(found)
    for a in range(len(levels)):
        for b in range(len(levels)):
            moved = found.copy()
            step = 0.01 * min(found[a], found[b])
            moved[a] += step
            moved[b] -= step
            assert a == b or errors.total(moved) >= reached * (1 - 1e-9)


@given(st.lists(st.integers(0, 300) | st.integers(0, 2**40), max_size=30))
def test_histogram_keeps_every_count(counts):
    level = LevelCounts.of(np.array(counts, dtype=np.int64))
    rebuilt = np.repeat(level.values, level.areas.astype(int))
    np.testing.assert_array_equal(np.sort(rebuilt), np.sort(counts))


def test_levels_without_weight_or_areas_get_nothing():
    np.testing.assert_allclose(allocate([[10], [4, 6], []], 2, [0, 1, 1]), [0, 2, 0])


def test_one_level_gets_everything():
    assert allocate([[5, 0, 7]], 1.5) == pytest.approx([1.5])


def test_narrow_integer_types_are_accepted():
    small = np.array([1, 200], dtype=np.uint8)
    np.testing.assert_allclose(allocate([small], 1), allocate([[1, 200]], 1))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1], [1]], 1, [1.0]), "1 weights for 2 levels"),
        (([[1], [1]], 1, [1.0, -1.0]), "at least zero"),
        (([[1], [1]], 1, [1.0, float("nan")]), "at least zero"),
        (([[1], [1]], 1, [0, 0]), "nothing to optimise"),
        (([], 1), "nothing to optimise"),
        (([[]], 1), "nothing to optimise"),
        (([[-1]], 1), "at least zero"),
        (([[0.5]], 1), "whole"),
        (([[1]], 0), "positive"),
        (([[1]], float("inf")), "positive"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    for function in (allocate, least_budget):
        with pytest.raises(InputError, match=words):
            function(*arguments)


# -- Delaware -------------------------------------------------------------------------------------

DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = [DATA / f"census_blocks_{year}_de.parquet" for year in (2010, 2020)]


def state_tract_block(path):
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["geoid", "pop"]).to_pandas()
    tracts = table.groupby(table["geoid"].str[:11])["pop"].sum()
    return [np.array([tracts.sum()]), tracts.to_numpy(), table["pop"].to_numpy()]


@pytest.mark.skipif(
    not all(path.exists() for path in FILES), reason="needs ../shared/data: Delaware's blocks"
)
def test_delaware():
    prior, truth = map(state_tract_block, FILES)
    found, uniform = allocate(prior, 2), np.full(3, 2 / 3)
    np.testing.assert_allclose(found, [0.0588, 0.3526, 1.5886], atol=1e-4)

    def total(errors, epsilons):
        return sum(
            errors("laplace", 1 / e, counts).sum()
            for e, counts in zip(epsilons, truth, strict=True)
        )

    def bias_squared(*arguments):
        return clipped_bias(*arguments) ** 2

    assert total(clipped_mse, found) <= 0.25 * total(clipped_mse, uniform)
    assert total(bias_squared, found) <= 0.19 * total(bias_squared, uniform)
