"""One contract for all mechanisms that turn noisy tables of group sizes into whole ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from group_size_metrics import earth_movers_distance, violations
from oracles.group_sizes import joint_optimum, real_optimum
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.estimate.group_sizes import (
    DEFAULT_MECHANISM,
    MECHANISMS,
    cumulative_exact,
    cumulative_joint,
    cumulative_relaxed,
    histogram_exact,
    histogram_relaxed,
    solve,
)
from trellis.model import Hierarchy
from trellis.privacy.group_size_changes import SizeQuery

compiled = settings(deadline=None)  # the first example may compile
each_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def measured(query: SizeQuery, tables, rng=None, spread: int = 0) -> list[np.ndarray]:
    if query is SizeQuery.CUMULATIVE:
        tables = [np.cumsum(t, axis=1)[:, :-1] for t in tables]
    if rng is None:
        return tables
    return [t + rng.integers(-spread, spread + 1, t.shape) for t in tables]


@each_mechanism
@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1), n_sizes=st.integers(1, 5))
def test_promises_are_kept(name, tree, seed, n_sizes):
    mechanism, rng = MECHANISMS[name], np.random.default_rng(seed)
    truth = tree.sum_up(rng.poisson(2, (tree.sizes[-1], n_sizes)))
    noisy = measured(mechanism.query, truth, rng, spread=5)
    groups = truth[-1].sum(axis=1)
    weights = rng.integers(1, 4, tree.n_levels).tolist()
    fitted = mechanism.post_process(tree, noisy, groups, weights, tie_seed=seed)
    assert [t.shape for t in fitted] == [t.shape for t in truth]
    assert all(t.dtype == np.int64 for t in fitted)
    broken = violations(tree, fitted, groups)
    assert broken.negative == 0
    if mechanism.adds_up:
        assert broken.count == 0
    if mechanism.keeps_groups:
        assert broken.areas == 0


@each_mechanism
@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_without_noise_the_truth_comes_back(name, tree, seed):
    mechanism = MECHANISMS[name]
    truth = tree.sum_up(np.random.default_rng(seed).poisson(2, (tree.sizes[-1], 4)))
    noisy = measured(mechanism.query, truth)
    fitted = mechanism.post_process(tree, noisy, truth[-1].sum(axis=1))
    for table, true in zip(fitted, truth, strict=True):
        assert np.array_equal(table, true)


@each_mechanism
def test_the_same_seed_gives_the_same_answer(name):
    mechanism, rng = MECHANISMS[name], np.random.default_rng(3)
    tree = Hierarchy.from_paths([("r", a, a + b) for a in "abc" for b in "uvwxyz"])
    truth = tree.sum_up(rng.poisson(1, (18, 30)))
    noisy = measured(mechanism.query, truth, rng, spread=6)
    groups = truth[-1].sum(axis=1)
    first, again, other = (
        mechanism.post_process(tree, noisy, groups, tie_seed=seed) for seed in (5, 5, 6)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    if name in ("histogram_exact", "cumulative_exact"):  # those with ties to break
        assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@settings(compiled, max_examples=50)
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_relaxed_answers_are_rounded_optima(tree, seed):
    rng = np.random.default_rng(seed)
    truth = tree.sum_up(rng.poisson(2, (tree.sizes[-1], 3)))
    groups, weights = truth[-1].sum(axis=1), rng.integers(1, 4, tree.n_levels).tolist()
    noisy = measured(SizeQuery.HISTOGRAM, truth, rng, spread=4)
    real = real_optimum(tree, noisy, weights, int(groups.sum()))
    for table, x in zip(histogram_relaxed(tree, noisy, groups, weights), real, strict=True):
        assert np.abs(table - x).max() <= 0.5 + 1e-3

    noisy = measured(SizeQuery.CUMULATIVE, truth, rng, spread=4)
    real = joint_optimum(tree, noisy, weights, groups)
    for table, x in zip(cumulative_relaxed(tree, noisy, groups, weights), real, strict=True):
        # The joint fit stops half a group from the optimum at the latest, or nearly so.
        assert np.abs(np.cumsum(table, axis=1)[:, :-1] - x).max() <= 2


def test_relaxed_answers_do_not_add_up():
    rng = np.random.default_rng(11)
    tree = Hierarchy.from_paths([("r", a, a + b) for a in "abcdef" for b in "uvwxyz"])
    truth = tree.sum_up(rng.poisson(3, (36, 40)))
    groups = truth[-1].sum(axis=1)
    for name in ("histogram_relaxed", "cumulative_relaxed"):
        mechanism = MECHANISMS[name]
        noisy = measured(mechanism.query, truth, rng, spread=6)
        assert violations(tree, mechanism.post_process(tree, noisy, groups), groups).sums > 50


def test_histogram_exact_is_solve():
    rng = np.random.default_rng(2)
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b"), ("r", "c")])
    noisy = [rng.integers(-3, 9, (n, 5)) for n in tree.sizes]
    groups = [4, 0, 7]
    for a, b in zip(
        histogram_exact(tree, noisy, groups, [1, 3], tie_seed=9),
        solve(tree, noisy, 11, [1, 3], tie_seed=9),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_the_joint_fit_keeps_sizes_near_where_rows_alone_drift():
    rng = np.random.default_rng(7)
    tree = Hierarchy.from_paths([("r", a, a + b) for a in "ab" for b in "uvwxyz"])
    truth = tree.sum_up(rng.poisson(0.05, (12, 800)))
    noisy = measured(SizeQuery.CUMULATIVE, truth, rng, spread=5)
    groups = truth[-1].sum(axis=1)
    drifting = cumulative_exact(tree, noisy, groups)
    joint = cumulative_joint(tree, noisy, groups)
    for level in range(3):
        distances = [earth_movers_distance(t[level], truth[level]) for t in (joint, drifting)]
        assert 3 * distances[0] < distances[1]


def test_the_default_is_the_joint_fit():
    assert MECHANISMS[DEFAULT_MECHANISM].post_process is cumulative_joint


TREE = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "state"])
GOOD = [np.array([[3, 4]]), np.array([[2, 2], [1, 2]])]


@each_mechanism
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GOOD, [1, 2, 3]), "each of 2 areas of level 'state'"),
        ((GOOD, 3), "each of 2 areas"),
        ((GOOD, [1, -1]), "negative"),
        ((GOOD, [1, 0.5]), "fractions"),
        ((GOOD, ["a", "b"]), "numbers of groups must be a full array"),
        ((GOOD[:1], [1, 2]), "1 tables for 2 levels"),
        ((GOOD, [1, 2], [1]), "1 weights for 2 levels"),
        ((GOOD, [1, 2], [1, 0]), "Level 'state' has weight 0"),
        (([GOOD[0] + 2**51, GOOD[1]], [1, 2]), "beyond 2\\^50"),
    ],
)
def test_bad_input_is_refused_in_one_line(name, arguments, message):
    with pytest.raises(StructureError, match=message) as caught:
        MECHANISMS[name].post_process(TREE, *arguments)
    assert "\n" not in str(caught.value)


def test_counts_beyond_the_range_of_a_method_are_refused():
    large = [GOOD[0] + 2**45, GOOD[1]]
    with pytest.raises(StructureError, match="2\\^40"):
        histogram_relaxed(TREE, large, [1, 2])
    wide = [np.full((n, 2**8), 2**47) for n in TREE.sizes]
    for fit in (cumulative_relaxed, cumulative_exact, cumulative_joint):
        with pytest.raises(StructureError, match="too large"):
            fit(TREE, wide, [1, 2])
