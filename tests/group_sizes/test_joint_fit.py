from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.group_sizes import joint_optimum
from strategies import hierarchies
from trellis.estimate.group_sizes.joint import fit_cumulative
from trellis.model import Hierarchy
from trellis.numerics.group_sizes.error_diffusion import diffuse_errors

compiled = settings(deadline=None)  # the first example may compile


def instance(tree: Hierarchy, seed: int, n_columns: int = 3):
    """Noisy cumulative counts, the last size left out, and the public numbers of groups."""
    rng = np.random.default_rng(seed)
    histogram = rng.poisson(1.5, (tree.sizes[-1], n_columns + 1))
    truth = [np.cumsum(t, axis=1)[:, :-1] for t in tree.sum_up(histogram)]
    noisy = [t + rng.integers(-4, 5, t.shape) for t in truth]
    weights = [Fraction(int(w)) for w in rng.integers(1, 5, tree.n_levels)]
    return noisy, histogram.sum(axis=1), weights


@settings(compiled, max_examples=60)
@given(tree=hierarchies(max_levels=4), seed=st.integers(0, 2**32 - 1))
def test_tends_to_the_optimum(tree, seed):
    noisy, groups, weights = instance(tree, seed)
    fit = fit_cumulative(tree, noisy, groups, weights, tolerance=1e-9, most_rounds=5000)
    dense = joint_optimum(tree, noisy, [float(w) for w in weights], groups)
    for adding_up, monotone, slow in zip(fit.adding_up, fit.monotone, dense, strict=True):
        np.testing.assert_allclose(adding_up, slow, atol=1e-5)
        np.testing.assert_allclose(monotone, slow, atol=1e-5)


@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_each_half_keeps_its_promise_in_any_round(tree, seed):
    noisy, groups, weights = instance(tree, seed)
    fit = fit_cumulative(tree, noisy, groups, weights, tolerance=0.0, most_rounds=5)
    for level, (x, z) in enumerate(zip(fit.adding_up, fit.monotone, strict=True)):
        if level < tree.leaf_level:
            below = tree.sum_children(level, fit.adding_up[level + 1])
            np.testing.assert_allclose(below, x, rtol=1e-9, atol=1e-9)
        assert np.all(np.diff(z, axis=1) >= 0)
        assert np.all((z >= 0) & (z <= tree.sum_up(groups)[level][:, None]))


@compiled
@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_a_level_of_weight_zero_is_not_read(tree, seed):
    noisy, groups, weights = instance(tree, seed)
    kept = np.random.default_rng(seed).integers(0, 2, tree.n_levels - 1).tolist()
    weights = [w * k for w, k in zip(weights, [*kept, 1], strict=True)]
    other = [t if w else t + 99 for t, w in zip(noisy, weights, strict=True)]
    fits = [fit_cumulative(tree, t, groups, weights, tolerance=0.01) for t in (noisy, other)]
    for a, b in zip(fits[0].adding_up, fits[1].adding_up, strict=True):
        assert np.array_equal(a, b)


def test_threads_change_nothing():
    tree = Hierarchy.from_paths([("r", f"{i:04}") for i in range(2000)])
    noisy, groups, weights = instance(tree, 8, n_columns=60)
    fits = [fit_cumulative(tree, noisy, groups, weights, tolerance=0.1, workers=w) for w in (1, 3)]
    assert fits[0].rounds == fits[1].rounds
    assert np.array_equal(fits[0].adding_up[1], fits[1].adding_up[1])


# -- whole numbers --------------------------------------------------------------------------------


def diffused(leaves, groups) -> np.ndarray:
    leaves = np.asarray(leaves, dtype=np.float64)
    out = np.empty(leaves.shape, np.int64)
    diffuse_errors(leaves, np.asarray(groups), out)
    return out


@compiled
@given(seed=st.integers(0, 2**32 - 1), n_leaves=st.integers(1, 40))
def test_errors_do_not_pile_up_in_runs_of_leaves(seed, n_leaves):
    """Where no bound is near, any run of leaves is off by less than two halves."""
    rng = np.random.default_rng(seed)
    leaves = 50 + np.cumsum(rng.uniform(2, 5, (n_leaves, 6)), axis=1)
    whole = diffused(leaves, np.full(n_leaves, 1000))
    drift = np.cumsum(whole - leaves, axis=0)
    assert np.abs(drift).max() <= 0.5 + 1e-9


@compiled
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_are_monotone_within_their_groups(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 5, 8)
    whole = diffused(rng.normal(2, 3, (8, 5)), groups)
    assert np.all(np.diff(whole, axis=1) >= 0)
    assert np.all((whole >= 0) & (whole <= groups[:, None]))


@pytest.mark.parametrize("n_columns", [0, 1])
def test_few_sizes(n_columns):
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")])
    fit = fit_cumulative(
        tree,
        [np.zeros((1, n_columns), np.int64), np.ones((2, n_columns), np.int64)],
        np.array([3, 4]),
        [Fraction(1)] * 2,
    )
    assert fit.adding_up[1].shape == (2, n_columns)
