"""Errors against the truth are those that the obvious sums give."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.metrics import plain_errors
from trellis.confidential.metrics import level_errors, size_classes
from trellis.errors import StructureError

whole = st.integers(0, 2000)
rows = st.lists(st.tuples(whole, whole, whole, whole), min_size=1, max_size=40)


@given(rows)
def test_errors_match_the_plain_sums(found):
    truth, published, one, other = (
        np.array(column)[:, None] for column in zip(*found, strict=True)
    )
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    fast = level_errors("town", "counts", truth, published, (lower, upper))
    ends = list(zip(lower.ravel().tolist(), upper.ravel().tolist(), strict=True))
    slow = plain_errors(truth.ravel().tolist(), published.ravel().tolist(), ends)
    for name, value in slow.items():
        assert asdict(fast.errors)[name] == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert fast.true_zeros == sum(x == 0 for x in truth.ravel())
    assert fast.false_positives == sum((truth == 0) & (published > 0))
    assert fast.false_negatives == sum((truth > 0) & (published == 0))


@given(rows)
def test_size_classes_take_every_count_once(found):
    truth, published = (np.array(column)[:, None] for column in list(zip(*found, strict=True))[:2])
    by_size = level_errors("town", "counts", truth, published).by_size
    assert sum(size.errors.counts for size in by_size) == truth.size
    whole_bias = sum(size.errors.bias * size.errors.counts for size in by_size) / truth.size
    assert whole_bias == pytest.approx(float((published - truth).mean()), abs=1e-9)


def test_size_classes_are_powers_of_ten():
    assert size_classes(0) == [(0, 0)]
    assert size_classes(10) == [(0, 0), (1, 9), (10, 99)]


def test_without_intervals_nothing_is_said_of_coverage():
    found = level_errors("town", "counts", np.array([[1]]), np.array([[2]]))
    assert found.errors.coverage is None
    assert found.errors.interval_width is None


def test_shapes_must_agree():
    with pytest.raises(StructureError, match="same shape"):
        level_errors("town", "counts", np.array([[1]]), np.array([[1, 2]]))
