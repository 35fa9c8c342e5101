"""Priors: public counts of the leaves, carried over where areas changed."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trellis.errors import InputError, SourceError
from trellis.ingest.public.priors import Crosswalk, Prior, _whole, read_prior
from trellis.model import Hierarchy

TREE = Hierarchy.from_paths([("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1")])


def prior(counts, **options):
    table = pa.table({"area": list(counts), "n": list(counts.values())})
    return Prior(table, "area", [{"n": 1}], **options)


def walk(*rows, share="part"):
    columns = dict(zip(("old", "new", "part"), zip(*rows, strict=True), strict=True))
    return Crosswalk(pa.table(columns), "old", "new", share)


def read(*arguments, **options):
    return read_prior(prior(*arguments, **options), TREE, None)[:, 0].tolist()


def test_counts_come_in_the_order_of_the_leaves():
    assert read({"b1": 3, "a1": 1, "a2": 2}) == [1, 2, 3]


def test_rows_of_one_area_are_added_up():
    table = pa.table({"area": ["a1", "b1", "a1", "a2"], "n": [1, 2, 3, 0]})
    found = read_prior(Prior(table, "area", [{"n": 1}]), TREE, None)
    assert found[:, 0].tolist() == [4, 0, 2]


def test_cells_are_sums_and_differences():
    table = pa.table({"area": ["a1", "a2", "b1"], "pop": [5, 6, 7], "vap": [2, 6, 0]})
    found = read_prior(Prior(table, "area", [{"vap": 1}, {"pop": 1, "vap": -1}]), TREE, None)
    assert found.tolist() == [[2, 3], [6, 0], [0, 7]]


def test_codes_are_padded():
    tree = Hierarchy.from_paths([("0", "01"), ("0", "02")])
    table = pa.table({"area": [1, 2], "n": [3, 4]})
    assert read_prior(Prior(table, "area", [{"n": 1}]), tree, 2)[:, 0].tolist() == [3, 4]


def test_a_crosswalk_splits_old_areas():
    crosswalk = walk(("x", "a1", 0.25), ("x", "a2", 0.75), ("y", "b1", 1), ("y", "a1", 1))
    assert read({"x": 8, "y": 10}, crosswalk=crosswalk) == [7, 6, 5]


def test_parts_are_scaled_and_parts_of_nothing_are_equal():
    crosswalk = walk(("x", "a1", 0), ("x", "a2", 0), ("y", "b1", 7))
    assert read({"x": 8, "y": 10}, crosswalk=crosswalk) == [4, 4, 10]


def test_without_parts_an_area_is_split_equally():
    crosswalk = walk(("x", "a1", 0), ("x", "a2", 1), ("y", "b1", 0), share=None)
    assert read({"x": 8, "y": 10}, crosswalk=crosswalk) == [4, 4, 10]


def test_old_areas_that_count_nothing_need_no_crosswalk():
    crosswalk = walk(("x", "a1", 1), ("x", "a2", 1), ("x", "b1", 1))
    assert read({"x": 9, "lake": 0}, crosswalk=crosswalk) == [3, 3, 3]


def test_missing_areas_may_be_declared_empty():
    assert read({"a2": 5}, missing_is_zero=True) == [0, 5, 0]


@given(arrays(np.float64, (7, 2), elements=st.floats(0, 1e6)))
def test_rounding_keeps_sums_of_runs(leaves):
    whole = _whole(leaves)
    assert (whole >= 0).all()
    for first in range(7):
        for last in range(first + 1, 8):
            gap = np.abs(whole[first:last].sum(axis=0) - leaves[first:last].sum(axis=0))
            assert (gap <= 1 + 1e-6).all()


@given(arrays(np.int64, (5, 1), elements=st.integers(0, 2**40)))
def test_whole_numbers_stay_as_they_are(leaves):
    np.testing.assert_array_equal(_whole(leaves.astype(np.float64)), leaves)


@pytest.mark.parametrize(
    ("counts", "options", "words"),
    [
        ({"a1": 1, "a2": 1, "zz": 1, "zy": 0}, {}, r"2 areas \('zy', 'zz'\).*crosswalk"),
        ({"a1": 1}, {}, r"2 areas \('a2', 'b1'\) of level 'level_2' are missing"),
        ({"a1": -1, "a2": 1, "b1": 1}, {}, "missing, negative"),
        ({"a1": None, "a2": 1, "b1": 1}, {}, "missing, negative"),
        ({"a1": "x", "a2": "1", "b1": "1"}, {}, "unreadable"),
        ({"x": 1}, {"crosswalk": walk(("y", "a1", 1))}, r"1 areas \('x'\).*Complete the crosswalk"),
        ({"x": 1}, {"crosswalk": walk(("x", "c9", 1))}, r"1 areas \('c9'\).*to this hierarchy"),
        ({"x": 1}, {"crosswalk": walk(("x", "a1", -1))}, "parts that are missing, negative"),
    ],
)
def test_priors_that_do_not_fit_are_refused(counts, options, words):
    with pytest.raises(InputError, match=words):
        read(counts, **options)


def test_a_missing_column_is_named():
    table = pa.table({"area": ["a1"], "n": [1]})
    with pytest.raises(SourceError, match="no column 'count'"):
        read_prior(Prior(table, "area", [{"count": 1}]), TREE, None)
