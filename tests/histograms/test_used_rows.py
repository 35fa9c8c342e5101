"""Rows that a descent reads, and single entries of sparse counts, against their slow twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.used_rows import used_rows
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.model.tables.measured_rows import EveryRow, UsedRows
from trellis.model.tables.sparse_counts import SparseCounts

CELL_OF = np.array([0, 1, 1, 2, 0, 3], dtype=np.int32)
"""A query of four cells on six."""


def counts(rng, n_areas, share):
    dense = rng.integers(1, 9, (n_areas, CELL_OF.size)) * (rng.random((n_areas, 6)) < share)
    return dense, SparseCounts.from_dense(dense)


worlds = given(
    tree=hierarchies().filter(lambda tree: tree.n_levels > 1),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
)


@settings(deadline=None)
@worlds
def test_used_rows_match_their_twin(tree, seed, share):
    rng = np.random.default_rng(seed)
    level = int(rng.integers(1, tree.n_levels))
    dense, parents = counts(rng, tree.sizes[level - 1], share)
    found = UsedRows.below(parents, tree.child_start[level - 1], CELL_OF, 4)
    expected = used_rows(tree, level, dense.tolist(), CELL_OF.tolist())
    assert found.n_rows == len(expected)
    cuts = np.sort(rng.integers(0, found.n_rows + 1, 3)).tolist()
    for first, last in zip([0, *cuts], [*cuts, found.n_rows], strict=True):
        area, cell = found.located(first, last)
        assert list(zip(area.tolist(), cell.tolist(), strict=True)) == expected[first:last]


@settings(deadline=None)
@worlds
def test_a_run_of_areas_is_written_out_with_zeros_where_nothing_is_used(tree, seed, share):
    rng = np.random.default_rng(seed)
    dense, parents = counts(rng, tree.sizes[-2], share)
    found = UsedRows.below(parents, tree.child_start[-1], CELL_OF, 4)
    whole = np.zeros((tree.sizes[-1], 4), dtype=np.int64)
    values = rng.integers(1, 9, found.n_rows)
    rows = used_rows(tree, tree.leaf_level, dense.tolist(), CELL_OF.tolist())
    for value, row in zip(values, rows, strict=True):
        whole[row] = value
    first, last = np.sort(rng.integers(0, tree.sizes[-1] + 1, 2)).tolist()
    begin, end = found.of_areas(first, last)
    out = found.written_out(first, last, values[begin:end])
    np.testing.assert_array_equal(out, whole[first:last])


def test_every_row_is_all_of_them():
    rows = EveryRow(5, 4)
    assert rows.n_rows == 20
    assert rows.of_areas(1, 3) == (4, 12)
    assert rows.written_out(1, 3, np.arange(8)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_single_entries_of_a_marginal(seed, share):
    rng = np.random.default_rng(seed)
    _, sparse = counts(rng, 7, share)
    area, cell = np.nonzero(rng.random((7, 4)) < 0.4)
    found = sparse.marginal_rows(CELL_OF, 4, area, cell)
    np.testing.assert_array_equal(found, sparse.marginal(CELL_OF, 4)[area, cell])


# -- guards ---------------------------------------------------------------------------------------

FAMILIES = np.array([0, 2, 4])


@pytest.mark.parametrize(
    ("start", "cell", "message"),
    [
        ([0, 2, 3], [1, 1, 2], "used once"),
        ([0, 2, 3], [2, 1, 2], "used once"),
        ([0, 2, 3], [1, 4, 2], "belongs to a cell"),
        ([0, 2, 3], [-1, 1, 2], "belongs to a cell"),
        ([0, 2, 2], [0, 1, 2], "of each family"),
        ([0, 3], [0, 1, 2], "of each family"),
    ],
)
def test_rows_that_would_be_measured_twice_are_refused(start, cell, message):
    with pytest.raises(StructureError, match=message):
        UsedRows(4, FAMILIES, np.array(start), np.array(cell, dtype=np.int32))
