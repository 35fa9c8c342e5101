"""Verification makes flows again from their measurements: honest ones hold, others do not."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest
from forged_files import read_column, write_column
from hypothesis import given
from hypothesis import strategies as st
from random_flows import METHODS, random_release

import trellis
from flow_worlds import release_into
from forging import broken, fit_manifest
from oracles.chebyshev import cheapest_support, least_distance, take_one_by_one
from oracles.projection import priorities
from trellis.verify import verify_run
from trellis.verify.flows import families as flow_families
from trellis.verify.flows import rules


@pytest.mark.parametrize("method", METHODS)
def test_an_honest_release_holds(tmp_path, method):
    made = random_release(tmp_path, random.Random(method), method)
    assert [(f.problems, f.notes) for f in verify_run(made) if f.problems or f.notes] == []
    again = random.Random(method).choice(METHODS)
    trellis.Release(made).estimate(again, tmp_path / "again")
    assert broken(tmp_path / "again") == set()


# -- forgeries ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["chebyshev", "l2", "gls_chebyshev", "gls_l2"])
def finished(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    changes = {"privacy__budget": {"rho": 20}, "output": {"csv": False}}
    return release_into(folder, estimate={"method": request.param}, **changes).path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def last_level(run):
    return trellis.Release(run).plan.levels[-1]


def test_trips_that_move_to_a_sibling_are_found(run):
    """From a1 to a2, which lie in one state, with intervals wide enough for both."""
    level = last_level(run)
    estimates = run / f"estimates/level={level}.parquet"
    keys = list(zip(*(read_column(estimates, k) for k in ("origin", "destination")), strict=True))
    table = run / f"release/{level}.parquet"
    moved = next(
        [i, j]
        for i, (o, d) in enumerate(keys)
        for j, (p, e) in enumerate(keys)
        if o < p < 2 and d == e
    )
    for path in (estimates, table, run / "release/od_matrix.parquet"):
        counts = read_column(path, "count")
        counts[moved] += [-3, 3]
        write_column(path, "count", counts)
    for end, wider in (("lower", np.minimum), ("upper", np.maximum)):
        ends = wider(read_column(table, end), read_column(table, "count"))
        write_column(table, end, ends)
    fit_manifest(run)
    assert broken(run) - {"report"} == {"flow_counts"}


def measured_file(run):
    return next((run / f"measurements/level={last_level(run)}").glob("*.parquet"))


def test_a_pair_that_was_not_left_is_found(run):
    path = measured_file(run)
    expanded = read_column(path, "expanded")
    expanded[np.argmax(expanded)] = False
    write_column(path, "expanded", expanded)
    fit_manifest(run)
    assert "flow_descent" in broken(run)


def test_a_changed_measurement_is_found(run):
    path = measured_file(run)
    values = read_column(path, "value")
    values[np.argmin(values)] += 10_000
    write_column(path, "value", values)
    fit_manifest(run)
    assert broken(run) & {"flow_counts", "flow_margins"}


# -- the slow twins -------------------------------------------------------------------------------

families = st.lists(
    st.tuples(st.lists(st.integers(-9, 12), min_size=1, max_size=6), st.integers(0, 30)),
    min_size=1,
    max_size=4,
)


def as_families(given_ones, seed):
    sizes = [len(x) for x, _ in given_ones]
    start = np.concatenate([[0], np.cumsum(sizes)])
    x = np.concatenate([x for x, _ in given_ones]).astype(np.int64)
    sums = np.array([c for _, c in given_ones], dtype=np.int64)
    return rules.Families(x, start, sums, rules.ranks(seed, np.arange(x.size)))


@given(families, st.integers(0, 2**62), st.booleans())
def test_chebyshev_is_that_of_the_paper(given_ones, seed, descending):
    found = as_families(given_ones, seed)
    y = rules.chebyshev(found, descending=descending)
    for f, (x, total) in enumerate(given_ones):
        first, last = found.start[f], found.start[f + 1]
        slow = take_one_by_one(x, total, descending=descending, seed=seed, first_index=int(first))
        assert y[first:last].tolist() == (slow if total else [0] * len(x))
        if total:
            assert np.abs(y[first:last] - x).max() == least_distance(x, total)


@given(families, st.integers(0, 2**62))
def test_least_squares_cannot_be_improved(given_ones, seed):
    found = as_families(given_ones, seed)
    y = rules.least_squares(found)
    assert found.total(y).tolist() == found.sums.tolist()
    assert (y >= 0).all()
    assert rules.is_least_squares(found, found.x, np.ones(y.size), y).all()
    moved = y.copy()
    moved[0] += 3
    moved[1:2] -= 3
    if found.sizes[0] > 1 and moved[1] >= 0:
        assert not rules.is_least_squares(found, found.x, np.ones(y.size), moved)[0]


@given(families, st.integers(1, 40))
def test_the_support_is_the_cheapest(given_ones, price):
    found = as_families(given_ones, 0)
    kept = rules.support(found, np.full(len(given_ones), float(price)))
    for f, (x, total) in enumerate(given_ones):
        chosen = np.flatnonzero(kept[found.start[f] : found.start[f + 1]])
        if total == 0:
            assert not chosen.size
            continue
        inside = sum(x[i] for i in chosen)
        outside = sum(v**2 for i, v in enumerate(x) if i not in chosen)
        cost = outside + (total - inside) ** 2 / chosen.size + price * chosen.size
        assert cost <= cheapest_support(x, total, price) + 1e-6


def test_ranks_are_those_of_ties():
    expected = [int(rank) for rank in priorities(77, 5, 20)]
    assert rules.ranks(77, np.arange(5, 25)).tolist() == expected


def test_many_halves_may_be_rounded_either_way_and_no_farther():
    """More than can be tried: the farthest count decides."""
    u, rank = np.arange(12) + 0.5, np.arange(12, dtype=np.uint64)
    start, sums = np.array([0, 12]), np.array([80])
    every = rules.Families(u, start, sums, rank)
    up = rules.chebyshev(rules.Families(np.ceil(u).astype(np.int64), start, sums, rank))
    assert flow_families._other_rounding(None, "chebyshev", None, None, every, up, 0)
    moved = up + np.array([9, -9, *[0] * 10])
    assert not flow_families._other_rounding(None, "chebyshev", None, None, every, moved, 0)
    assert not flow_families._other_rounding(None, "chebyshev", None, None, every, up + 1, 0)
