"""Group sizes follow from the measurements: honest releases hold, and forgeries are found."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forging import (
    add,
    broken,
    change_column,
    column,
    estimates,
    few,
    fit_manifest,
    move,
    n_cells,
    parents,
    publish_again,
)
from random_releases import SIZE_METHODS, SizesShape, release_sizes
from strategies import hierarchies
from trellis.estimate.group_sizes import histogram_relaxed, isotonic, solve
from trellis.verify import verify_run
from trellis.verify.counts.families import Families
from trellis.verify.group_sizes import fitted
from trellis.verify.group_sizes.isotonic import nearest_rows
from trellis.verify.group_sizes.joint_fit import Forest, fits
from trellis.verify.group_sizes.real_optimum import real_optimum
from trellis.verify.group_sizes.tables import NAMES
from trellis.verify.group_sizes.tree_exchange import is_nearest


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The same tree with the same groups for all methods, and little noise."""
    found = {}
    for method in SIZE_METHODS:
        rng, folder = np.random.default_rng(4), tmp_path_factory.mktemp("sizes")
        found[method] = release_sizes(rng, folder, SizesShape(method=method, budget="20")).path
    return found


@pytest.mark.parametrize("method", SIZE_METHODS)
def test_honest_releases_hold(finished, method):
    assert broken(finished[method]) == set()


@pytest.mark.parametrize("seed", few(range(10)))
def test_random_honest_releases_hold(tmp_path, seed):
    rng = np.random.default_rng(seed)
    assert broken(release_sizes(rng, tmp_path, SizesShape.random(rng)).path) == set()


# -- forgeries ------------------------------------------------------------------------------------


def movable(run: Path) -> tuple[int, int, int, int]:
    """Two siblings and two sizes: groups of the first can become larger, and of the second less."""
    counts = column(estimates(run)[-1], "count", n_cells(run))
    parent, sizes = parents(run)[-1], range(n_cells(run))
    for a, b, s, t in product(range(len(parent)), range(len(parent)), sizes, sizes):
        if a != b and parent[a] == parent[b] and s != t and min(counts[a, s], counts[b, t]) > 2:
            return a, b, s, t
    raise AssertionError("no two siblings can exchange sizes")


def exchange(run, column, by):
    """Two siblings exchange sizes: every area keeps its groups, and everything adds up."""
    a, b, s, t = movable(run)
    for leaf, size, sign in ((a, s, -1), (a, t, 1), (b, t, -1), (b, s, 1)):
        add(estimates(run)[-1], column, leaf * n_cells(run) + size, sign * by)
    publish_again(run)


@pytest.mark.parametrize("method", SIZE_METHODS)
def test_groups_that_change_sizes_between_siblings_are_found(copied, method):
    run = copied(method)
    exchange(run, "count", 2)
    assert broken(run) - {"report"} == {"fitted_sizes"}


@pytest.mark.parametrize("method", SIZE_METHODS)
def test_centres_that_moved_are_found(copied, method):
    run = copied(method)
    exchange(run, "centre", 0.01)
    assert broken(run) - {"report"} == {"linear_estimates"}


def test_centres_that_do_not_add_up_to_the_groups_are_found(copied):
    run = copied("cumulative_joint")
    move(run, "centre", 0, 0.5, n_cells(run) - 1)
    publish_again(run)
    assert broken(run) - {"report"} == {"linear_estimates"}


@pytest.mark.parametrize("method", SIZE_METHODS)
def test_standard_errors_that_are_too_small_are_found(copied, method):
    run = copied(method)
    for path in estimates(run):
        change_column(path, "std_error", lambda errors: errors * 0.001)
    publish_again(run)
    assert broken(run) - {"report"} == {"standard_errors"}


@pytest.mark.parametrize("end", ["lower", "upper"])
@pytest.mark.parametrize("statistic", NAMES)
def test_one_end_of_one_interval_is_found(copied, statistic, end):
    run = copied("cumulative_joint")
    path = run / "release/statistics/l0.parquet"
    place = NAMES.index(statistic)

    def wider(values):
        by = -0.5 if end == "lower" else 0.5
        values[place] = 0.5 + by if statistic == "gini" else values[place] + by
        return values

    change_column(path, end, wider)
    fit_manifest(run)
    assert broken(run) - {"report"} == {"statistic_intervals"}


@pytest.mark.parametrize("method", SIZE_METHODS)
def test_a_measurement_that_estimates_do_not_follow_is_found(copied, method):
    run = copied(method)
    (leaves,) = {f for f in (run / "measurements/level=l2").iterdir() if "total" not in f.name}
    width = n_cells(run) - method.startswith("cumulative")
    add(leaves, "value", movable(run)[0] * width, 9)  # of an area with groups: others are not read
    fit_manifest(run)
    assert "linear_estimates" in broken(run)


@pytest.mark.parametrize("method", ["histogram_relaxed", "cumulative_relaxed", "cumulative_joint"])
def test_what_is_too_large_to_be_fitted_again_is_noted(copied, monkeypatch, method):
    monkeypatch.setattr(fitted, "MOST_SOLVED", 5)
    monkeypatch.setattr(fitted, "MOST_STEPS", 5)
    (finding,) = [f for f in verify_run(copied(method)) if f.check == "fitted_sizes"]
    assert finding.holds
    assert finding.notes == (f"Not computed again: {method} of tables this large.",)


# -- parts ----------------------------------------------------------------------------------------


def families_of(hierarchy):
    return [Families(hierarchy.parents(i), "") for i in range(1, hierarchy.n_levels)]


@st.composite
def noisy_sizes(draw):
    hierarchy = draw(hierarchies(max_levels=3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    noisy = [rng.integers(-3, 6, (size, 2)) for size in hierarchy.sizes]
    weights = [int(w) for w in rng.integers(1, 4, hierarchy.n_levels)]
    return hierarchy, noisy, weights, draw(st.integers(0, 12))


@given(noisy_sizes(), st.integers(0, 2**40))
def test_an_optimum_is_the_nearest_and_no_move_of_a_unit_is_nearer(world, seed):
    """Compared by the objective itself: moves of equal cost are optima too."""
    hierarchy, noisy, weights, total = world
    best = solve(hierarchy, noisy, total, weights, tie_seed=seed)

    def objective(tables):
        terms = zip(weights, tables, noisy, strict=True)
        return sum(w * ((n - y) ** 2).sum() for w, n, y in terms)

    assert is_nearest(families_of(hierarchy), noisy, best, weights)
    places = list(np.ndindex(best[-1].shape))
    for giver, taker in product(places, places):
        leaves = best[-1].copy()
        leaves[giver] -= 1
        leaves[taker] += 1
        if leaves.min() < 0:
            continue
        other = hierarchy.sum_up(leaves)
        is_best = objective(other) == objective(best)
        assert is_nearest(families_of(hierarchy), noisy, other, weights) == is_best


@given(noisy_sizes())
def test_the_real_optimum_has_equal_prices_and_rounds_to_the_relaxed_method(world):
    hierarchy, noisy, weights, total = world
    found = real_optimum(families_of(hierarchy), [y * 1.0 for y in noisy], weights, total)
    assert found[0].sum() == pytest.approx(total)
    assert min(values.min() for values in found) >= -1e-12
    for level, sums in zip(found, hierarchy.sum_up(found[-1]), strict=True):
        np.testing.assert_allclose(level, sums, atol=1e-9)
    price = np.zeros_like(found[-1])
    for level in range(hierarchy.n_levels):
        own = 2 * weights[level] * (found[level] - noisy[level])
        path = np.arange(hierarchy.sizes[-1])
        for below in range(hierarchy.leaf_level, level, -1):
            path = hierarchy.parents(below)[path]
        price += own[path]
    if total:
        least = price.min()
        assert (price[found[-1] > 1e-9] <= least + 1e-6).all()
    groups = np.zeros(hierarchy.sizes[-1], dtype=int)
    groups[0] = total
    rounded = histogram_relaxed(hierarchy, noisy, groups, weights)
    assert all((np.abs(a - b) < 0.501).all() for a, b in zip(rounded, found, strict=True))


@given(st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=1, max_size=6))
def test_rows_are_pooled_like_those_of_the_textbook(rows):
    """The least over ends of the greatest over beginnings of means."""
    values, most = np.array(rows, dtype=float), np.full(len(rows), 6.0)
    slow = [
        [
            min(max(row[a : b + 1].mean() for a in range(i + 1)) for b in range(i, 5))
            for i in range(5)
        ]
        for row in values
    ]
    np.testing.assert_allclose(nearest_rows(values, most), np.clip(slow, 0, 6), atol=1e-12)
    np.testing.assert_allclose(np.clip(isotonic(values), 0, 6), np.clip(slow, 0, 6), atol=1e-12)


def test_the_joint_fit_tends_to_tables_that_add_up_and_grow(monkeypatch):
    """With no tolerance, both halves meet."""
    monkeypatch.setattr("trellis.verify.group_sizes.joint_fit.TOLERANCE", 1e-7)
    monkeypatch.setattr("trellis.verify.group_sizes.joint_fit.ROUNDS", 20_000)
    rng = np.random.default_rng(1)
    family = Families(np.array([0, 0, 1]), "town")
    top = Families(np.array([0, 0]), "state")
    noisy = [rng.normal(5, 4, (size, 3)) for size in (1, 2, 3)]
    groups = [np.array([9.0]), np.array([6.0, 3.0]), np.array([2.0, 4.0, 3.0])]
    *_, (x, z) = fits(Forest([top, family], [1.0, 2.0, 1.0]), noisy, groups, 20_000)
    for adding_up, monotone in zip(x, z, strict=True):
        np.testing.assert_allclose(adding_up, monotone, atol=1e-6)
    np.testing.assert_allclose(family.sum(x[2]), x[1], atol=1e-9)
    assert all((np.diff(rows, axis=1) >= -1e-12).all() for rows in z)
