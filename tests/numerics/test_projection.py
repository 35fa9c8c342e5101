from __future__ import annotations

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.projection import (
    buy_cheapest_units,
    least_objective,
    objective,
    priorities,
    splitmix,
)
from strategies import Family, families, whole_families
from trellis.errors import StructureError
from trellis.estimate import project_l2, project_l2_families
from trellis.numerics.projection.any_weights import _buy_up_to, _cost, project_weighted
from trellis.numerics.ties import GOLDEN_STEP, kth_least, mix, priority, tie_key

SEEDS = st.integers(0, 2**64 - 1)


def floats(values) -> list[float]:
    return [float(value) for value in values]


# -- ties -----------------------------------------------------------------------------------------


def test_mix_gives_the_published_sequence():
    # First outputs of SplitMix64 for the seed 1234567.
    states = [(1234567 + k * GOLDEN_STEP) % 2**64 for k in (1, 2, 3)]
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(mix(np.uint64(state))) for state in states] == expected
    assert [splitmix(state) for state in states] == expected


@given(seed=SEEDS, first_index=st.integers(0, 2**40))
def test_priorities_match_their_twin(seed, first_index):
    key = tie_key(seed)
    fast = [int(priority(key, first_index + i)) for i in range(4)]
    assert fast == priorities(seed, first_index, 4)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30, unique=True), st.data())
def test_kth_least(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert kth_least(np.array(values, dtype=np.uint64), k) == sorted(values)[k - 1]


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 1.0, 2.0]])
def test_ties_favour_no_position(weights):
    n_seeds = 4000
    wins = sum(project_l2([0, 0, 0, 0, -9], 1, weights, tie_seed=s) for s in range(n_seeds))
    # Fixed seeds: no false alarms. 5 standard errors of a binomial(4000, 1/4) are 137.
    assert wins[4] == 0
    assert np.abs(wins[:4] - n_seeds / 4).max() < 137


def test_ties_are_independent_between_families():
    n_families = 20_000
    start = np.arange(0, 3 * n_families + 1, 3)
    y = project_l2_families(np.zeros(start[-1]), start, np.ones(n_families), tie_seed=7)
    wins = y.reshape(-1, 3).sum(axis=0)
    assert np.abs(wins - n_families / 3).max() < 334  # 5 standard errors
    winner = y.reshape(-1, 3).argmax(axis=1)
    assert abs(np.mean(winner[1:] == winner[:-1]) - 1 / 3) < 0.017


# -- optimality -----------------------------------------------------------------------------------


def random_families(seed: int, weighted: bool, n_families: int = 5000):
    """Small families, full of ties, negative values, zeros, empty totals and only children."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 6, n_families))])
    x = rng.integers(-4, 7, start[-1]).astype(np.float64)
    totals = rng.integers(0, 9, n_families) * (rng.random(n_families) < 0.9)
    if not weighted:
        return x, start, totals, None
    return x + rng.integers(0, 4, x.size) / 4, start, totals, rng.integers(1, 9, x.size) / 4


@pytest.mark.parametrize("weighted", [False, True])
def test_no_mismatch_with_brute_force_in_5000_families(weighted):
    x, start, totals, weights = random_families(1, weighted)
    y = project_l2_families(x, start, totals, weights)
    assert y.dtype == np.int64
    assert y.min() >= 0
    assert np.array_equal(np.add.reduceat(y, start[:-1]), totals)
    mismatches = 0
    for lo, hi, total in zip(start[:-1], start[1:], totals, strict=True):
        w = None if weights is None else weights[lo:hi]
        mismatches += objective(y[lo:hi], x[lo:hi], w) != least_objective(x[lo:hi], int(total), w)
    assert mismatches == 0


@given(family=whole_families(), seed=SEEDS, first_index=st.integers(0, 2**40))
def test_whole_estimates_match_their_twin_ties_included(family, seed, first_index):
    x, total = family
    fast = project_l2_families(x, [0, len(x)], [total], tie_seed=seed, first_index=first_index)
    assert fast.tolist() == buy_cheapest_units(x, total, None, seed, first_index)


@settings(max_examples=400)
@given(family=families(), seed=SEEDS)
def test_weighted_estimates_match_their_twin_ties_included(family: Family, seed):
    fast = project_l2(floats(family.x), family.total, floats(family.weights), tie_seed=seed)
    assert fast.tolist() == buy_cheapest_units(family.x, family.total, family.weights, seed)


@given(family=whole_families(), seed=SEEDS)
def test_both_kernels_agree_on_equal_weights(family, seed):
    x, total = np.array(family[0], dtype=np.float64), family[1]
    y = np.empty(x.size, dtype=np.int64)
    start, totals = np.array([0, x.size]), np.array([total])
    project_weighted(x, np.full(x.size, 0.3), start, totals, tie_key(seed), 0, y, 0, 1)
    assert y.tolist() == project_l2(x, total, tie_seed=seed).tolist()


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)), min_size=1, max_size=6),
    st.integers(0, 40),
)
def test_any_floats_are_optimal_to_rounding(children, total):
    x, weights = [c[0] for c in children], [c[1] for c in children]
    y = project_l2(x, total, weights)
    assert y.sum() == total
    best = objective(buy_cheapest_units(x, total, weights), x, weights)
    assert objective(y, x, weights) <= best * (1 + Fraction(1, 10**14))


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(1e-3, 1e3)), min_size=1, max_size=6),
    st.integers(1, 100),
)
def test_a_limit_at_the_cost_of_a_unit_buys_just_that_unit(children, unit):
    # Rounding in x + limit / 2w may miss the unit or take one more.
    for x, weight in children:
        limit, y = _cost(x, weight, unit), np.empty(1, dtype=np.int64)
        bought = _buy_up_to(limit, np.array([x]), np.array([weight]), np.array([1 / weight]), y)
        assert bought == unit


@given(family=families(), order=st.randoms(use_true_random=False))
def test_relabelling_permutes_the_answer_up_to_ties(family: Family, order):
    y = project_l2(floats(family.x), family.total, floats(family.weights))
    new = list(range(len(family.x)))
    order.shuffle(new)
    x, weights = [family.x[i] for i in new], [family.weights[i] for i in new]
    moved = project_l2(floats(x), family.total, floats(weights))
    assert objective(moved, x, weights) == objective(y, family.x, family.weights)
    if len({*zip(x, weights, strict=True)}) == len(x) and not ties_possible(family):
        assert moved.tolist() == [y[i] for i in new]


def ties_possible(family: Family) -> bool:
    """Whether another seed changes the answer."""
    answers = {
        tuple(project_l2(floats(family.x), family.total, floats(family.weights), tie_seed=s))
        for s in range(20)
    }
    return len(answers) > 1


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20))
def test_without_noise_the_truth_comes_back(truth):
    weights = np.linspace(0.1, 1, len(truth))
    assert project_l2(truth, sum(truth)).tolist() == truth
    assert project_l2(truth, sum(truth), weights).tolist() == truth


# -- limits ---------------------------------------------------------------------------------------


def test_fixed_children_keep_their_value():
    assert project_l2([5, 9, 9], 9, [inf, 1, 1]).tolist()[0] == 5
    assert project_l2([5, 4], 9, [inf, inf]).tolist() == [5, 4]
    assert project_l2([9, 3, -50], 9, [inf, 1, 2]).tolist() == [9, 0, 0]


def test_unknown_children_take_what_the_others_leave():
    assert project_l2([3.2, 99, 4.9], 20, [1, 0, 5]).tolist() == [3, 12, 5]
    assert project_l2([30, 99], 20, [1, 0]).tolist() == [20, 0]
    assert sorted(project_l2([4, 0, 0], 9, [1, 0, 0])[1:].tolist()) == [2, 3]
    assert project_l2([4, 6, 0], 12, [1, 0, 0]).tolist() == [4, 7, 1]
    assert project_l2([3.4, 50, 8], 20, [1e-100, 0, 1e100]).tolist() == [3, 9, 8]


@given(family=families())
def test_weight_zero_is_the_limit_of_small_weights(family: Family):
    small = [Fraction(1, 10**9) if w == 0 else w for w in family.weights]
    limit = buy_cheapest_units(family.x, family.total, small)
    fast = project_l2(floats(family.x), family.total, floats(family.weights))
    assert fast.tolist() == limit


def test_values_at_the_edge_of_the_range():
    edge = 2**62
    assert project_l2([edge, -edge, -edge], 7).tolist() == [7, 0, 0]
    assert project_l2([-edge, -edge], 2).tolist() == [1, 1]
    assert project_l2([edge, edge - 1], 2**60 + 1).tolist() == [2**59 + 1, 2**59]
    assert project_l2([2.0**50, -(2.0**50)], 2**50, [1e100, 1e-100]).tolist() == [2**50, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_families_too_large_for_a_quadratic_method(weighted):
    rng = np.random.default_rng(3)
    n = 100_000
    shapes = {
        "sparse": rng.poisson(0.1, n),
        "geometric": np.rint(1.3 ** np.linspace(0, 120, n)),
        "equal": np.zeros(n),
        "factorial": np.r_[np.zeros(n - 17), -np.cumprod(np.arange(1.0, 18.0))],
    }
    weights = 10 ** rng.uniform(-3, 3, n) if weighted else None
    for x in shapes.values():
        y = project_l2(x, 12_345, weights)
        assert y.sum() == 12_345
        assert y.min() >= 0


# -- slices and threads ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_slices_and_threads_give_what_the_whole_gives(weighted):
    x, start, totals, weights = random_families(2, weighted, n_families=60_000)
    whole = project_l2_families(x, start, totals, weights, tie_seed=5, workers=1)
    threaded = project_l2_families(x, start, totals, weights, tie_seed=5, workers=3)
    assert np.array_equal(threaded, whole)
    for first, last in [(0, 7), (7, 1000), (1000, 60_000)]:
        lo, hi = start[first], start[last]
        part = project_l2_families(
            x[lo:hi],
            start[first : last + 1] - lo,
            totals[first:last],
            None if weights is None else weights[lo:hi],
            tie_seed=5,
            first_index=int(lo),
        )
        assert np.array_equal(part, whole[lo:hi])


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, nan], [0, 2], [1]), "NaN"),
        (([1, inf], [0, 2], [1]), "NaN or infinity"),
        (([[1, 2]], [0, 2], [1]), "flat"),
        ((["a", "b"], [0, 2], [1]), "flat"),
        (([[1], [2, 3]], [0, 2], [1]), "flat"),
        ((np.array([2**63], dtype=np.uint64), [0, 1], [1]), "2\\^62"),
        (([10**30, 1], [0, 2], [1]), "within 64 bits"),
        (([1, 2], [0, 1], [1]), "end with 2"),
        (([1, 2], [1, 2], [1]), "begin with 0"),
        (([1, 2], [], []), "begin with 0"),
        (([1, 2, 3], [0, 2, 1, 3], [1, 0, 1]), "decreases at family 1"),
        (([1, 2], [0, 0.5, 2], [1, 1]), "whole"),
        (([1, 2], [0, 2], [1, 1]), "2 totals for 1 families"),
        (([1, 2], [0, 2], [1.5]), "whole"),
        (([1, 2], [0, 2], [nan]), "NaN"),
        (([1, 2], [0, 1, 2], [1, -1]), "Family 1 has a negative total"),
        (([1, 2], [0, 2], [2**61]), "Family 0 has a total"),
        (([1, 2], [0, 2, 2], [1, 3]), "Family 1 has a positive total and no child"),
        (([1, 2], [0, 2], [1], [1]), "shape"),
        (([1, 2], [0, 2], [1], [1, -1]), "Weights"),
        (([1, 2], [0, 2], [1], [1, nan]), "Weights"),
        (([1, 2], [0, 2], [1], [1, 1e-200]), "Weights"),
        (([1, 2], [0, 2], [1], [1, "x"]), "flat"),
        (([0, 1, 2], [0, 1, 3], [0, 1], [1, 1, inf]), "Family 1 fixes children at more"),
        (([1, 1, 2], [0, 3], [3], [inf, inf, inf]), "Family 0 fixes children at more"),
        (([1, 1], [0, 2], [3], [inf, inf]), "Family 0 has a positive total and no child"),
        (([-1, 1], [0, 2], [3], [inf, 1]), "negative or fractional"),
        (([0.5, 1], [0, 2], [3], [inf, 1]), "negative or fractional"),
        (([2**51, 1], [0, 2], [3], [1, 2]), "2\\^50"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    with pytest.raises(StructureError, match=message) as caught:
        project_l2_families(*arguments)
    assert "\n" not in str(caught.value)


def test_empty_input():
    assert project_l2([], 0).tolist() == []
    assert project_l2_families([], [0], []).tolist() == []
    assert project_l2_families([1], [0, 0, 1, 1], [0, 2, 0]).tolist() == [2]
