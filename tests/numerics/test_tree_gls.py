from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.tree_gls import dense_gls, subtree
from strategies import hierarchies, identifiable_variances, variances
from trellis.errors import StructureError
from trellis.estimate import gls
from trellis.model import Hierarchy
from trellis.model.trees.codes import CODE
from trellis.numerics.trees.gls import estimates_up, variances_down, variances_up


@st.composite
def problems(draw, identifiable=True):
    """A hierarchy, measurements that respect exact totals, and their variances."""
    hierarchy = draw(hierarchies())
    strategy = identifiable_variances if identifiable else variances
    variance = draw(strategy(hierarchy))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = hierarchy.sum_up(rng.poisson(30, hierarchy.sizes[-1]).astype(np.float64))
    noisy = []
    for exact, s2 in zip(truth, variance, strict=True):
        noise = rng.normal(0, 1, exact.size) * np.sqrt(np.where(s2 < inf, s2, 0))
        noisy.append(np.where(s2 < inf, exact + noise, nan))
    return hierarchy, noisy, variance


def small_tree() -> Hierarchy:
    return Hierarchy.from_paths(
        [("us", "a", "a1"), ("us", "a", "a2"), ("us", "b", "b1"), ("us", "b", "b2")],
        ["nation", "county", "tract"],
    )


@settings(max_examples=300)
@given(problems())
def test_two_passes_match_the_dense_solution(problem):
    estimates, final = gls(*problem)
    dense = dense_gls(*problem)
    assert dense is not None
    for fast, slow in zip(estimates, dense[0], strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-6)
    for fast, slow in zip(final, dense[1], strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-7)


@settings(max_examples=200)
@given(problems(identifiable=False))
def test_an_error_exactly_when_a_leaf_is_undetermined(problem):
    dense = dense_gls(*problem)
    if dense is None:
        with pytest.raises(StructureError, match="Measure"):
            gls(*problem)
    else:
        np.testing.assert_allclose(gls(*problem)[0][-1], dense[0][-1], rtol=1e-7, atol=1e-6)


@given(problems())
def test_children_add_up_and_nothing_is_nan(problem):
    hierarchy = problem[0]
    estimates, final = gls(*problem)
    for level in range(hierarchy.n_levels - 1):
        sums = hierarchy.sum_children(level, estimates[level + 1])
        np.testing.assert_allclose(sums, estimates[level], rtol=1e-9, atol=1e-7)
    assert all(np.isfinite(values).all() for values in [*estimates, *final])
    assert all((values >= 0).all() for values in final)


@given(problems(), st.data())
def test_subtree_estimates_are_those_of_the_subtree_alone(problem, data):
    hierarchy, noisy, variance = problem
    v = variances_up(hierarchy, variance)
    u = estimates_up(hierarchy, noisy, variance, v)
    level = data.draw(st.integers(0, hierarchy.leaf_level))
    node = data.draw(st.integers(0, hierarchy.size(level) - 1))
    own, (values, own_variance) = subtree(hierarchy, level, node, noisy, variance)
    dense = dense_gls(own, values, own_variance)
    if dense is not None:
        assert u[level][node] == pytest.approx(dense[0][0][0], rel=1e-7, abs=1e-6)
        assert v[level][node] == pytest.approx(dense[1][0][0], rel=1e-7, abs=1e-7)
    assert not any(np.isnan(array).any() for array in [*u, *v])


@given(problems())
def test_relabelling_permutes_the_answer(problem):
    hierarchy, noisy, variance = problem
    mirrored = _mirror(hierarchy)
    estimates, final = gls(hierarchy, noisy, variance)
    moved = gls(mirrored, [z[::-1] for z in noisy], [s2[::-1] for s2 in variance])
    for level in range(hierarchy.n_levels):
        np.testing.assert_allclose(moved[0][level][::-1], estimates[level], rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(moved[1][level][::-1], final[level], rtol=1e-9, atol=1e-9)


def _mirror(hierarchy: Hierarchy) -> Hierarchy:
    """The same tree with the nodes of each level in reverse order."""
    return Hierarchy(
        hierarchy.level_names,
        tuple(codes[::-1] for codes in hierarchy.node_codes),
        tuple(np.ascontiguousarray(start[-1] - start[::-1]) for start in hierarchy.child_start),
        tuple(marks[::-1] for marks in hierarchy.passes_through),
    )


@given(problems(), st.integers(1, 3))
def test_columns_are_estimated_one_by_one(problem, n_columns):
    hierarchy, noisy, variance = problem
    columns = [np.stack([z * (k + 1) for k in range(n_columns)], axis=1) for z in noisy]
    together, final = gls(hierarchy, columns, variance)
    for k in range(n_columns):
        alone, alone_variance = gls(hierarchy, [z[:, k] for z in columns], variance)
        assert all(np.array_equal(a[:, k], b) for a, b in zip(together, alone, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(final, alone_variance, strict=True))


@given(hierarchies(), st.integers(0, 2**32 - 1), st.data())
def test_exact_measurements_return_the_truth(hierarchy, seed, data):
    rng = np.random.default_rng(seed)
    truth = hierarchy.sum_up(rng.integers(0, 10**6, hierarchy.sizes[-1]))
    exact = data.draw(st.integers(0, hierarchy.leaf_level))
    variance = [0.0 if level >= exact else 4.0 for level in range(hierarchy.n_levels)]
    noisy = [z + 0.0 if level >= exact else z + 3.0 for level, z in enumerate(truth)]
    estimates, final = gls(hierarchy, noisy, variance)
    for level in range(hierarchy.n_levels):
        np.testing.assert_array_equal(estimates[level], truth[level])
        assert not final[level].any()


# -- limits ---------------------------------------------------------------------------------------


def test_a_single_node():
    root = Hierarchy.from_paths([("us",)])
    estimates, final = gls(root, [[7.5]], [2])
    assert (estimates[0].tolist(), final[0].tolist()) == ([7.5], [2.0])


def test_an_unmeasured_child_takes_what_its_parent_leaves():
    estimates, final = gls(
        small_tree(),
        [[100], [nan, nan], [10.0, 20.0, 30.0, nan]],
        [1.0, inf, [1.0, 2.0, 3.0, inf]],
    )
    assert estimates[1].tolist() == [30, 70]
    assert estimates[2].tolist() == [10, 20, 30, 40]
    assert final[1].tolist() == [3, 4]
    assert final[2].tolist() == [1, 2, 3, 7]


@pytest.mark.parametrize("huge", [1e12, 1e15, 1e18, 1e99])
def test_a_huge_variance_tends_to_an_unmeasured_child(huge):
    tree = small_tree()
    noisy = [[100.0], [40.0, 60.0], [10.0, 20.0, 30.0, 0.0]]
    limit = gls(tree, noisy, [1.0, 2.0, [1.0, 2.0, 3.0, inf]])
    near = gls(tree, noisy, [1.0, 2.0, [1.0, 2.0, 3.0, huge]])
    for a, b in zip([*near[0], *near[1]], [*limit[0], *limit[1]], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_inputs_are_not_changed_and_not_shared():
    tree = small_tree()
    noisy = [np.ones(size) for size in tree.sizes]
    variance = [np.ones(size) for size in tree.sizes]
    estimates, final = gls(tree, noisy, variance)
    for array in [*estimates, *final, *variances_up(tree, variance)]:
        array[:] = -1
    assert all((array == 1).all() for array in [*noisy, *variance])


def test_threads_give_the_same_bits():
    n_parents = 50_000
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 5, n_parents))])
    sizes = (1, n_parents, int(starts[-1]))
    tree = Hierarchy(
        ("nation", "county", "tract"),
        tuple(np.array([f"{i:07d}" for i in range(n)], dtype=CODE) for n in sizes),
        (np.array([0, n_parents]), starts),
        tuple(np.zeros(n, dtype=bool) for n in sizes),
    )
    noisy = [rng.normal(0, 9, n) for n in sizes]
    variance = [rng.uniform(0.1, 9, n) for n in sizes]
    one, three = gls(tree, noisy, variance, workers=1), gls(tree, noisy, variance, workers=3)
    for a, b in zip([*one[0], *one[1]], [*three[0], *three[1]], strict=True):
        assert np.array_equal(a, b)


# -- bad input ------------------------------------------------------------------------------------

VALUES = [[1.0], [1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("noisy", "variance", "message"),
    [
        (VALUES[:2], [1, 1, 1], "2 arrays of values for 3 levels"),
        (VALUES, [1, 1], "2 variances for 3 levels"),
        ([[1.0], [1.0], VALUES[2]], [1, 1, 1], "Values of level 'county'"),
        ([[1.0], [nan, 1.0], VALUES[2]], [1, 1, 1], "'county' is NaN"),
        ([[[1.0]], *VALUES[1:]], [1, 1, 1], "Values of level 'county'"),
        ([["x"], *VALUES[1:]], [1, 1, 1], "Values of level 'nation'"),
        (VALUES, [1, 1, [1, 1, 1]], "Variances of level 'tract'"),
        (VALUES, [1, "x", 1], "Variances of level 'county'"),
        (VALUES, [1, -1, 1], "'county' is negative, missing"),
        (VALUES, [1, nan, 1], "'county' is negative, missing"),
        (VALUES, [1e101, 1, 1], "infinity for areas that are not measured"),
        (VALUES, [inf, inf, [1, inf, 1, 1]], "determines the total of 'us' on level 'nation'"),
        (VALUES, [1, 1, [1, 1, inf, inf]], "level 'tract' in 'b' of level 'county'.*Measure"),
        (VALUES, [1, inf, inf], "level 'county' in 'us' of level 'nation'"),
        (VALUES, [1, 0, 0], "exact total of 'a' of level 'county' is not the sum"),
    ],
)
def test_bad_input_is_refused_in_one_line(noisy, variance, message):
    with pytest.raises(StructureError, match=message) as caught:
        gls(small_tree(), noisy, variance)
    assert "\n" not in str(caught.value)


def test_variances_need_no_values():
    tree = small_tree()
    subtree_variances = variances_up(tree, [4.0, inf, 2.0])
    assert [v.tolist() for v in subtree_variances] == [[8 / 3], [4, 4], [2, 2, 2, 2]]
    final = variances_down(tree, subtree_variances)
    assert final[1].tolist() == pytest.approx([4 * (1 - 1 / 2) + 8 / 12] * 2)
