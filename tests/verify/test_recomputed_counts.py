"""Counts follow from the measurements: honest releases hold, consistent forgeries are found.

A forgery changes the estimates in one place, and the tables are made from them by the package
itself, so nothing else can notice it.
"""

import json
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
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
    publish_again,
    siblings,
    write_json,
)
from oracles.cells_gls import dense_cells_gls
from oracles.projection import buy_cheapest_units, priorities
from oracles.spines import dense_area_variances
from oracles.tree_gls import dense_gls, subtree
from random_releases import CountsShape, release_counts
from strategies import hierarchies, identifiable_variances, whole_families
from trellis.model import Hierarchy
from trellis.model.trees.areas import Category
from trellis.verify import verify_run
from trellis.verify.counts import area_errors, linear
from trellis.verify.counts.area_errors import entity_variances
from trellis.verify.counts.families import Families
from trellis.verify.counts.linear import final_variances, level_fits
from trellis.verify.counts.measured_tree import MeasuredTree
from trellis.verify.counts.ties import ranks
from trellis.verify.counts.whole_counts import is_cheapest
from worlds import TREE, noisy, plan_for

SHAPES = {
    "plain": CountsShape(),
    "cells": CountsShape(n_cells=3, laplace=True),
    "cells, nothing exact": CountsShape(n_cells=2, replaced=False),
    "exact": CountsShape(depth=5, exact=2, areas=True),
    "spine": CountsShape(n_cells=2, areas=True, spine=True),
    "real": CountsShape(method="gls", areas=True),
    "topdown": CountsShape(method="topdown", n_cells=2),
    "bottomup": CountsShape(method="bottomup", exact=1),
    "bottomup of cells": CountsShape(method="bottomup", n_cells=2, areas=True),
}
WHOLE = [name for name, shape in SHAPES.items() if shape.method != "gls"]
LINEAR = [name for name, shape in SHAPES.items() if shape.method[:3] == "gls"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    rng = np.random.default_rng(11)
    return {
        name: release_counts(rng, tmp_path_factory.mktemp("counts"), shape).path
        for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_honest_releases_hold(finished, shape):
    assert broken(finished[shape]) == set()


@pytest.mark.parametrize("seed", few(range(12)))
def test_random_honest_releases_hold(tmp_path, seed):
    rng = np.random.default_rng(seed)
    assert broken(release_counts(rng, tmp_path, CountsShape.random(rng)).path) == set()


# -- forgeries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_swapped_siblings_are_found(copied, shape):
    run = copied(shape)
    left, right = siblings(run, "count")
    for name in set(pq.read_schema(estimates(run)[-1]).names) - {"std_error"}:
        values = column(estimates(run)[-1], name, n_cells(run))
        for cell in range(n_cells(run)):
            gap = values[right, cell] - values[left, cell]
            move(run, name, left, gap, cell)
            move(run, name, right, -gap, cell)
    publish_again(run)
    found = broken(run)
    assert found
    assert found <= {"linear_estimates", "whole_counts"}


@pytest.mark.parametrize("shape", ["plain", "cells", "cells, nothing exact"])
@pytest.mark.parametrize("apart", [True, False])
def test_centres_moved_by_a_hundredth_of_their_error_are_found(copied, shape, apart):
    """A leaf with all areas around it, or one leaf up and its sibling down."""
    run = copied(shape)
    left, right = siblings(run, "centre", apart=0)
    by = 0.01 * column(estimates(run)[-1], "std_error", n_cells(run))[left, 0]
    move(run, "centre", left, by)
    if apart:
        move(run, "centre", right, -by)
    publish_again(run)
    assert "linear_estimates" in broken(run)


@pytest.mark.parametrize("shape", LINEAR)
def test_standard_errors_that_are_too_small_are_found(copied, shape):
    run = copied(shape)
    for path in (run / "estimates").rglob("*.parquet"):
        change_column(path, "std_error", lambda errors: errors * 0.001)
    publish_again(run)
    assert broken(run) - {"report"} == {"standard_errors"}


@pytest.mark.parametrize("shape", ["exact", "spine", "real"])
@pytest.mark.parametrize("level", [None, -1, -2])
def test_one_standard_error_is_found(copied, shape, level):
    run = copied(shape)
    path = run / "estimates/areas/zone.parquet" if level is None else estimates(run)[level]

    def shrunk(errors):
        errors[np.flatnonzero(errors > 0)[-1]] *= 0.99
        return errors

    change_column(path, "std_error", shrunk)
    publish_again(run)
    assert "standard_errors" in broken(run)


@pytest.mark.parametrize("shape", WHOLE)
def test_a_count_moved_to_a_sibling_is_found(copied, shape):
    run = copied(shape)
    left, right = siblings(run, "count", least=1)
    move(run, "count", left, -1)
    move(run, "count", right, 1)
    publish_again(run)
    assert broken(run) - {"report"} == {"whole_counts"}


def test_a_count_of_areas_further_up_is_found(copied):
    """All counts add up; a leaf and all above it have one more, as no exact total forbids."""
    run = copied("cells, nothing exact")
    move(run, "count", 0, 2)
    publish_again(run)
    assert broken(run) - {"report"} == {"whole_counts"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_measurement_that_estimates_do_not_follow_is_found(copied, shape):
    run = copied(shape)
    files = sorted((run / "measurements").rglob("*.parquet"))
    noisy = [f for f in files if pq.read_table(f)["variance"].to_numpy().max() > 0]
    changed = max(noisy, key=lambda f: pq.read_metadata(f).num_rows)  # the leaves
    # Which leaf does not matter on a spine; elsewhere, only children may be read by no method.
    leaf = 0 if SHAPES[shape].spine else siblings(run, "count")[1]
    add(changed, "value", leaf * n_cells(run), 100)
    fit_manifest(run)
    found = broken(run)
    assert found
    assert found <= {"linear_estimates", "whole_counts"}


def test_margins_of_a_method_without_any_are_found(copied):
    run = copied("topdown")
    for path in estimates(run):
        table = pq.read_table(path)
        real = table["count"].cast("double")
        pq.write_table(table.append_column("centre", real).append_column("std_error", real), path)
    publish_again(run)
    assert broken(run) - {"report"} == {"linear_estimates"}


def test_older_formats_are_noted_and_not_computed_again(copied):
    run = copied("plain")
    plan = json.loads((run / "plan.json").read_text())
    write_json(run / "plan.json", plan | {"format": 2})
    fit_manifest(run)
    notes = {finding.check: finding.notes for finding in verify_run(run)}
    assert all(len(notes[check]) == 1 for check in ("linear_estimates", "whole_counts"))


def test_a_sample_of_areas_is_drawn_and_noted(copied, monkeypatch):
    monkeypatch.setattr(area_errors, "ALL_LEAVES", 3)
    monkeypatch.setattr(area_errors, "DRAWN", 2)
    run = copied("spine")
    (finding,) = [f for f in verify_run(run) if f.check == "standard_errors"]
    assert finding.holds
    assert any(note.startswith("Standard errors of 2 of") for note in finding.notes)
    path = run / "estimates/areas/zone.parquet"
    change_column(path, "std_error", lambda errors: errors * 0.9)
    publish_again(run)
    assert "standard_errors" in broken(run)


# -- against oracles ------------------------------------------------------------------------------


def as_tree(hierarchy: Hierarchy, values, variance, root_sum=None) -> MeasuredTree:
    names = list(hierarchy.level_names)
    families = [Families(hierarchy.parents(i), names[i]) for i in range(1, hierarchy.n_levels)]
    return MeasuredTree(names, families, values, variance, root_sum)


@st.composite
def measured(draw):
    """A tree, variances from 0 to infinity, and values of which the exact ones add up."""
    hierarchy = draw(hierarchies())
    variance = draw(identifiable_variances(hierarchy))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = hierarchy.sum_up(rng.integers(-5, 50, (hierarchy.sizes[-1], 2)).astype(float))
    values = [
        np.where(s2[:, None] > 0, t + rng.normal(0, 3, t.shape), t)
        for t, s2 in zip(truth, variance, strict=True)
    ]
    return hierarchy, values, variance


@given(measured(), st.integers(0, 100))
def test_estimates_of_dense_matrices_are_optimal_and_have_the_same_variances(world, leaf):
    hierarchy, values, variance = world
    solved = [dense_gls(hierarchy, [v[:, i] for v in values], variance) for i in range(2)]
    assert solved[0] is not None
    assert solved[1] is not None
    tree = as_tree(hierarchy, values, variance)
    for found, expected in zip(final_variances(tree), solved[0][1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    centres = [np.column_stack(pair) for pair in zip(solved[0][0], solved[1][0], strict=True)]
    with patch.object(linear, "ROUNDING", 1e-7):  # matrices lose more digits
        assert all(fit.is_optimal for fit in level_fits(tree, centres))
        for fit in level_fits(tree, centres):
            node = leaf % len(fit.variance)
            part, (z, s2) = subtree(hierarchy, fit.index, node, values, variance)
            if (alone := dense_gls(part, [v[:, 0] for v in z], s2)) is not None:
                found = fit.subtree[node, 0], fit.variance[node]
                assert found == pytest.approx((alone[0][0][0], alone[1][0][0]), rel=1e-5, abs=1e-5)
        other = centres[-1].copy()
        other[leaf % len(other), 0] += 1
        assert not all(fit.is_optimal for fit in level_fits(tree, hierarchy.sum_up(other)))


@given(measured(), st.integers(0, 10**6))
def test_areas_have_the_variances_of_dense_matrices(world, seed):
    hierarchy, values, variance = world
    member = np.random.default_rng(seed).integers(-1, 3, hierarchy.sizes[-1])
    member = np.unique(np.append(-1, member), return_inverse=True)[1][1:] - 1
    size = int(member.max()) + 1
    codes = np.array([f"z{i}" for i in range(size)])
    slow = dense_area_variances(hierarchy, variance, Category("zone", codes, member))
    found, _ = entity_variances(as_tree(hierarchy, values, variance), member, np.arange(size))
    np.testing.assert_allclose(found, slow, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_cells", [2, 3])
def test_cells_with_an_exact_sum_have_the_variances_of_dense_matrices(n_cells):
    plan = plan_for(n_cells=n_cells)
    leaves = np.random.default_rng(n_cells).integers(0, 30, (5, n_cells))
    found = noisy(plan, TREE, leaves)
    centres, variances = dense_cells_gls(found)
    by_level = {q.level: v for q, v in zip(plan.queries, found.values, strict=True) if q.noise}
    noise = [next(q.variance for q in plan.queries if q.level == n and q.noise) for n in by_level]
    values = [by_level[name].astype(float) for name in TREE.level_names]
    tree = as_tree(
        TREE, values, [np.full(len(v), s2) for v, s2 in zip(values, noise, strict=True)],
        int(leaves.sum()),
    )  # fmt: skip
    for mine, slow in zip(final_variances(tree), variances, strict=True):
        np.testing.assert_allclose(np.repeat(mine, n_cells), slow.ravel())
    assert all(fit.is_optimal for fit in level_fits(tree, centres))
    centres[-1][1, 0] += 1e-3
    assert not all(fit.is_optimal for fit in level_fits(tree, centres))


@given(whole_families(), st.integers(0, 2**63), st.integers(0, 10**6))
def test_only_the_promised_answer_is_the_cheapest(family, seed, first):
    """Of whole numbers: any exchange of one unit is found, ties included."""
    x, total = family
    y = np.array(buy_cheapest_units(x, total, seed=seed, first_index=first))
    one, ones = Families(np.zeros(len(x), dtype=int), "town"), np.ones(len(x))
    tie = ranks(seed, first + np.arange(len(x)))
    assert tie.tolist() == priorities(seed, first, len(x))

    def holds(counts):
        numbers = np.array(x, dtype=float), 0 * ones, ones
        return is_cheapest(one, numbers, counts, ones == 0, tie)

    assert holds(y)
    for giver in np.flatnonzero(y).tolist():
        for taker in range(len(x)):
            if taker != giver:
                other = y.copy()
                other[[giver, taker]] += [-1, 1]
                assert not holds(other)
