"""Sparse counts are the dense ones without the zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trellis.errors import StructureError
from trellis.model.tables.sparse_counts import SparseCounts

DENSE = hnp.arrays(
    np.int64, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=st.integers(0, 2)
)


@given(DENSE, st.data())
def test_there_and_back(dense: np.ndarray, data: st.DataObject) -> None:
    sparse = SparseCounts.from_dense(dense)
    assert sparse.n_areas == dense.shape[0]
    assert (sparse.dense() == dense).all()
    first = data.draw(st.integers(0, dense.shape[0]))
    last = data.draw(st.integers(first, dense.shape[0]))
    assert (sparse.dense(first, last) == dense[first:last]).all()


@pytest.mark.parametrize(
    ("start", "cell", "count"),
    [
        ([0, 2], [1, 0], [1, 1]),
        ([0, 2], [1, 1], [1, 1]),
        ([0, 1], [3], [1]),
        ([0, 1], [0], [0]),
        ([0, 2], [0], [1]),
        ([0, 2, 1], [0], [1]),
    ],
)
def test_malformed_counts_are_refused(start: list, cell: list, count: list) -> None:
    with pytest.raises(StructureError):
        SparseCounts(3, np.array(start), np.array(cell, dtype=np.int32), np.array(count))
