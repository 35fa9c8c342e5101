from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.group_sizes import (
    buy_cheapest_units,
    can_be_improved,
    least_objective,
    objective,
    real_optimum,
)
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.estimate.group_sizes import checks, solve
from trellis.estimate.group_sizes.least_squares import _tree_shape
from trellis.estimate.group_sizes.measured_levels import MeasuredLevels
from trellis.model import Hierarchy
from trellis.numerics.group_sizes import integer_optimum, pruned_forest
from trellis.numerics.group_sizes.unit_prices import PRICE_LIMIT
from trellis.numerics.ties import tie_key

compiled = settings(deadline=None)  # the first example may compile


def random_tree(rng: np.random.Generator, n_levels: int, most_leaves: int = 14) -> Hierarchy:
    paths = [("r",)]
    for _ in range(n_levels - 1):
        longer = [(*p, f"{p[-1]}.{c}") for p in paths for c in range(rng.integers(1, 4))]
        paths = longer[: max(most_leaves, len(paths))]
    return Hierarchy.from_paths(paths)


def random_tables(rng, tree: Hierarchy, n_sizes: int, spread: int) -> list[np.ndarray]:
    return [rng.integers(-spread, spread + 3, (n, n_sizes)) for n in tree.sizes]


def assert_consistent(tree: Hierarchy, fitted, total: int | None) -> None:
    for level in range(tree.leaf_level):
        assert np.array_equal(tree.sum_children(level, fitted[level + 1]), fitted[level])
    assert all(table.dtype == np.int64 and table.min() >= 0 for table in fitted)
    if total is not None:
        assert fitted[0].sum() == total


# -- optimality -----------------------------------------------------------------------------------


def count_mismatches(seed: int, n_instances: int) -> int:
    rng, mismatches = np.random.default_rng(seed), 0
    for instance in range(n_instances):
        tree = random_tree(rng, n_levels=int(rng.integers(1, 6)))
        noisy = random_tables(rng, tree, int(rng.integers(1, 5)), int(rng.integers(1, 9)))
        weights = rng.integers(1, 5, tree.n_levels).tolist()
        total = int(rng.integers(0, 16)) if rng.random() < 0.85 else None
        fitted = solve(tree, noisy, total, weights, tie_seed=instance)
        assert_consistent(tree, fitted, total)
        least = least_objective(tree, noisy, weights, total, most=60 if total is None else total)
        mismatches += objective(fitted, noisy, weights) != least
    return mismatches


def test_no_mismatch_with_dynamic_programming_in_1500_instances():
    assert count_mismatches(seed=5, n_instances=1500) == 0


@pytest.mark.slow
def test_no_mismatch_with_dynamic_programming_in_10000_instances():
    assert count_mismatches(seed=2026, n_instances=10_000) == 0


@compiled
@given(tree=hierarchies(max_levels=5), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_matches_its_twin_ties_included(tree, seed, data):
    rng = np.random.default_rng(seed)
    noisy = random_tables(rng, tree, data.draw(st.integers(1, 3)), data.draw(st.integers(0, 6)))
    weights = data.draw(st.lists(st.integers(1, 3), min_size=tree.n_levels, max_size=tree.n_levels))
    total = data.draw(st.integers(0, 12))
    fitted = solve(tree, noisy, total, weights, tie_seed=seed)
    twin = buy_cheapest_units(tree, noisy, total, weights, seed)
    for fast, slow in zip(fitted, twin, strict=True):
        assert np.array_equal(fast, slow)


@compiled
@given(tree=hierarchies(max_levels=5), seed=st.integers(0, 2**32 - 1))
def test_any_first_guess_of_the_price_gives_the_same_answer(tree, seed):
    rng = np.random.default_rng(seed)
    if tree.n_levels == 1:
        return
    noisy = random_tables(rng, tree, 3, int(rng.integers(1, 300)))
    weights = rng.integers(1, 40, tree.n_levels).tolist()
    shape = _tree_shape(MeasuredLevels(tree, tuple(range(tree.n_levels))), weights)
    arguments = shape, np.concatenate(noisy[:-1]), noisy[-1], int(rng.integers(1, 2000)), tie_key(1)
    whole = integer_optimum.cheapest_units(*arguments)
    for guess in (int(rng.integers(-20_000, 20_000)), -(2**45), 0):
        guessed = integer_optimum.cheapest_units(*arguments, guess)
        assert all(np.array_equal(a, b) for a, b in zip(whole, guessed, strict=True))


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_many_sizes_are_pruned_and_optimal(n_levels, monkeypatch):
    """Enough sizes for the sampled guess, against the same problem without pruning."""
    rng = np.random.default_rng(n_levels)
    tree = random_tree(rng, n_levels, most_leaves=60)
    truth = rng.poisson(40 * 0.8 ** np.arange(150), (tree.sizes[-1], 150))
    noisy = [t + rng.geometric(0.2, t.shape) - rng.geometric(0.2, t.shape)
             for t in tree.sum_up(truth)]  # fmt: skip
    limits = []

    def spy(shape, rows, leaves, limit, most_units):
        limits.append((rows.shape[1], limit))
        return pruned_forest.prune(shape, rows, leaves, limit, most_units)

    monkeypatch.setattr(integer_optimum, "prune", spy)
    fitted = solve(tree, noisy, truth.sum(), tie_seed=3)
    assert any(n_sizes == 150 and limit < PRICE_LIMIT for n_sizes, limit in limits)
    monkeypatch.setattr(integer_optimum, "guessed_price", lambda *_: PRICE_LIMIT)
    assert_consistent(tree, fitted, truth.sum())
    for a, b in zip(fitted, solve(tree, noisy, truth.sum(), tie_seed=3), strict=True):
        assert np.array_equal(a, b)


@compiled
@given(tree=hierarchies(max_levels=4), seed=st.integers(0, 2**32 - 1))
def test_large_counts_and_weights_are_optimal(tree, seed):
    rng = np.random.default_rng(seed)
    size = 2 ** int(rng.integers(20, 44))
    noisy = [rng.integers(-size, size, (n, 2)) for n in tree.sizes]
    weights = rng.integers(1, 9, tree.n_levels).tolist()
    total = int(rng.integers(1, 4 * size))
    fitted = solve(tree, noisy, total, weights)
    assert_consistent(tree, fitted, total)
    assert not can_be_improved(tree, fitted, noisy, weights)


@compiled
@given(seed=st.integers(0, 2**32 - 1))
def test_prices_up_to_the_limit_of_64_bits(seed):
    """Multiplying all weights changes no answer, up to the largest that the checks let pass."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 6)))
    noisy = random_tables(rng, tree, 2, int(rng.integers(1, 10_000)))
    total = int(rng.integers(1, 20_000))
    weights = rng.integers(1, 5, tree.n_levels).tolist()
    span = 2 * total + 4 + sum(4 * int(np.abs(t).max()) for t in noisy)
    factor = PRICE_LIMIT // (span * sum(weights))
    levels = MeasuredLevels(tree, tuple(range(tree.n_levels)))
    answers = [
        integer_optimum.cheapest_units(
            _tree_shape(levels, [w * f for w in weights]),
            np.concatenate(noisy[:-1]), noisy[-1], total, tie_key(0),
        )
        for f in (1, factor)
    ]  # fmt: skip
    assert all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))


@compiled
@given(tree=hierarchies(max_levels=4), seed=st.integers(0, 2**32 - 1))
def test_whole_optimum_on_a_fine_grid_is_the_real_one(tree, seed):
    rng = np.random.default_rng(seed)
    noisy = random_tables(rng, tree, 2, 8)
    weights = rng.integers(1, 4, tree.n_levels).tolist()
    total, grid = int(rng.integers(0, 30)), 2**20
    fine = solve(tree, [t * grid for t in noisy], total * grid, weights)
    for whole, real in zip(fine, real_optimum(tree, noisy, weights, total), strict=True):
        np.testing.assert_allclose(whole / grid, real, atol=1e-4)


# -- properties -----------------------------------------------------------------------------------


@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_without_noise_the_truth_comes_back(tree, seed):
    truth = tree.sum_up(np.random.default_rng(seed).poisson(2, (tree.sizes[-1], 4)))
    for total in (int(truth[0].sum()), None):
        for fitted, true in zip(solve(tree, truth, total), truth, strict=True):
            assert np.array_equal(fitted, true)


@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_a_level_of_weight_zero_is_not_read(tree, seed):
    rng = np.random.default_rng(seed)
    noisy = random_tables(rng, tree, 3, 5)
    weights = [*rng.integers(0, 2, tree.n_levels - 1).tolist(), 2]
    for total in (None, 7):
        fitted = solve(tree, noisy, total, weights)
        other = [t if w else t + 1000 for t, w in zip(noisy, weights, strict=True)]
        assert_consistent(tree, fitted, total)
        for a, b in zip(fitted, solve(tree, other, total, weights), strict=True):
            assert np.array_equal(a, b)
        # Sums of noisy leaves may pass any fixed bound of the search.
        most = max(40, int(fitted[0].max()) + 5) if total is None else total
        least = least_objective(tree, noisy, weights, total, most=most)
        assert objective(fitted, noisy, weights) == least


def test_weights_of_any_kind_stand_for_their_ratios():
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 3)
    noisy = random_tables(rng, tree, 3, 6)
    expected = solve(tree, noisy, 9, [1, 2, 5])
    for weights in (
        [0.1, 0.2, 0.5],
        np.array([0.1, 0.2, 0.5]),
        [Fraction(1, 7), Fraction(2, 7), Fraction(5, 7)],
        [Decimal("0.3"), Decimal("0.6"), Decimal("1.5")],
        [10**30, 2 * 10**30, 5 * 10**30],
    ):
        for a, b in zip(solve(tree, noisy, 9, weights), expected, strict=True):
            assert np.array_equal(a, b)


def test_ratios_too_fine_for_64_bits_are_rounded_little():
    given_weights = [Fraction(repr(w)) for w in (0.6369616873214543, 0.2697867137638703, 0.04097)]
    whole = checks.whole_weights(given_weights, [2**27] * 3, 2**27)
    span = 2 * 2**27 + 4 + 3 * 4 * 2**27
    assert sum(whole) * span <= PRICE_LIMIT
    for w, given_weight in zip(whole, given_weights, strict=True):
        assert abs(w / whole[0] / float(given_weight / given_weights[0]) - 1) < 2**-22


def test_ties_favour_no_area_and_no_size():
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b"), ("r", "c")])
    noisy = [np.zeros((1, 4)), np.zeros((3, 4))]
    n_seeds = 3000
    wins = sum(solve(tree, noisy, 1, tie_seed=seed)[1] for seed in range(n_seeds))
    # Fixed seeds: no false alarms. 5 standard errors of a binomial(3000, 1/12) are 76.
    assert np.abs(wins - n_seeds / 12).max() < 76


def test_units_that_cost_nothing_are_halved():
    """One child: the parent asks for 3, the child for 2; either answer is optimal."""
    tree = Hierarchy.from_paths([("r", "a")])
    noisy = [np.full((1, 1000), 3), np.full((1, 1000), 2)]
    fitted = solve(tree, noisy)[0]
    assert set(fitted.ravel().tolist()) == {2, 3}
    assert fitted.sum() == 2500


def test_floats_that_are_whole_are_taken_as_such():
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")])
    noisy = [[[3.0, 1.0]], [[2.0, -1.0], [1.0, 1.0]]]
    assert [t.tolist() for t in solve(tree, noisy, 4.0)] == [[[3, 1]], [[2, 0], [1, 1]]]


# -- bad input ------------------------------------------------------------------------------------

TREE = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "state"])
GOOD = [[[3, 1]], [[2, -1], [1, 1]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GOOD[:1],), "1 tables for 2 levels"),
        (([[[3, 1]], [[2, -1]]],), "level 'state' has shape"),
        (([[[3, 1]], [[2], [1]]],), "level 'state' has shape"),
        (([[3, 1], [[2, -1], [1, 1]]],), "level 'nation' has shape"),
        (([[[3, 1]], [[2, 0.5], [1, 1]]],), "level 'state' holds fractions"),
        (([[[3, nan]], GOOD[1]],), "level 'nation' holds NaN"),
        (([[[3, inf]], GOOD[1]],), "level 'nation' holds NaN"),
        (([[[3, 2**51]], GOOD[1]],), "beyond 2\\^50"),
        (([[[3, 2**70]], GOOD[1]],), "full array of numbers"),
        (([[["3", "x"]], GOOD[1]],), "full array of numbers"),
        (([[[3, 1]], [[2, -1], [1]]],), "full array of numbers"),
        ((GOOD, -1), "whole number from 0"),
        ((GOOD, 1.5), "whole number from 0"),
        ((GOOD, nan), "whole number from 0"),
        ((GOOD, True), "whole number from 0"),
        ((GOOD, "4"), "whole number from 0"),
        ((GOOD, 4, [1]), "1 weights for 2 levels"),
        ((GOOD, 4, [1, -1]), "weight of level 'state'"),
        ((GOOD, 4, [nan, 1]), "weight of level 'nation'"),
        ((GOOD, 4, [inf, 1]), "weight of level 'nation'"),
        ((GOOD, 4, ["1", 1]), "weight of level 'nation'"),
        ((GOOD, 4, [1, 0]), "Level 'state' has weight 0"),
        ((GOOD, 4, [1, 1e30]), "differ too much"),
        (([np.array(t) + 2**49 for t in GOOD], 4, [1, 2.0**30 + 1]), "64-bit arithmetic"),
        (([np.zeros((1, 0)), np.zeros((2, 0))], 4), "no sizes"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    with pytest.raises(StructureError, match=message) as caught:
        solve(TREE, *arguments)
    assert "\n" not in str(caught.value)


def test_no_sizes_and_no_groups():
    assert [t.shape for t in solve(TREE, [np.zeros((1, 0)), np.zeros((2, 0))], 0)] == [
        (1, 0),
        (2, 0),
    ]


@pytest.mark.parametrize("size", [1, 5, 11, 12, 60, 400, 401, 3000])
def test_sort_descending(size):
    rng = np.random.default_rng(size)
    keys = rng.integers(-9, 9, size) if size % 2 else rng.integers(-(2**50), 2**50, size)
    items, sorted_keys = np.arange(size), keys.copy()
    scratch = np.empty(3 * pruned_forest.MOST_RANKED, np.int64)
    pruned_forest.sort_descending(sorted_keys, items, scratch)
    assert np.array_equal(sorted_keys, np.sort(keys)[::-1])
    assert np.array_equal(keys[items], sorted_keys)
