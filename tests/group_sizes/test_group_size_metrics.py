from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from group_size_metrics import earth_movers_distance, l1_error, violations
from trellis.model import Hierarchy

TREE = Hierarchy.from_paths([("r", "a"), ("r", "b")])
TABLES = [np.array([[3, 1, 2]]), np.array([[1, 1, 0], [2, 0, 2]])]
GROUPS = np.array([2, 4])


def test_l1_error_adds_up_cells():
    assert l1_error(TABLES[1], TABLES[1]) == 0
    assert l1_error(TABLES[1], np.array([[0, 2, 0], [2, 1, 1]])) == 4


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_earth_movers_distance_is_that_of_sorted_groups(sizes, seed):
    other = np.random.default_rng(seed).integers(0, 7, len(sizes))
    tables = [np.bincount(s, minlength=7)[np.newaxis] for s in (sizes, other)]
    expected = np.abs(np.sort(sizes) - np.sort(other)).sum()
    assert earth_movers_distance(*tables) == expected


def test_earth_movers_distance_adds_up_areas():
    assert earth_movers_distance(np.array([[1, 0], [0, 1]]), np.array([[0, 1], [1, 0]])) == 2


def test_a_table_without_violations():
    found = violations(TREE, TABLES, GROUPS)
    assert (found.count, found.areas) == (0, 0)


def test_each_violation_is_counted():
    root, states = TABLES
    found = violations(TREE, [root + np.array([[1, 0, -1]]), states], GROUPS)
    assert (found.sums, found.negative, found.totals, found.areas) == (2, 0, 0, 0)
    found = violations(TREE, [root + np.array([[0, 0, 1]]), states], GROUPS)
    assert (found.sums, found.negative, found.totals, found.areas) == (1, 0, 1, 1)
    found = violations(TREE, [root, states + np.array([[0, 0, -1], [0, 0, 1]])], GROUPS)
    assert (found.sums, found.negative, found.totals, found.areas) == (0, 1, 0, 2)
    assert found.count == 1
