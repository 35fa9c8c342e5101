from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import StructureError
from trellis.execution.threads import LEAST_RUN, available_workers, map_families, run_cuts


@given(st.lists(st.integers(0, 3 * LEAST_RUN), max_size=30), st.integers(1, 8))
def test_runs_cover_every_family_once(sizes, workers):
    cuts = run_cuts(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), workers)
    covered = [f for lo, hi in pairwise(cuts) for f in range(lo, hi)]
    assert covered == list(range(len(sizes)))


def test_runs_hold_about_equally_many_children():
    rng = np.random.default_rng(0)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 50, 100_000))])
    cuts = run_cuts(start, 4)
    children = np.diff(start[cuts])
    assert children.size > 4
    assert children.max() < 1.01 * children.mean()


def test_results_come_in_the_order_of_families():
    start = np.arange(0, 40 * LEAST_RUN + 1, 100)
    runs = map_families(lambda first, last: (first, last), start, workers=3)
    assert runs[0][0] == 0
    assert runs[-1][1] == start.size - 1
    assert all(a[1] == b[0] for a, b in pairwise(runs))


def test_small_inputs_stay_in_this_thread():
    start = np.array([0, 10, 20])
    assert map_families(lambda *_: threading.get_ident(), start, workers=4) == [
        threading.get_ident()
    ]


def test_large_inputs_leave_it():
    start = np.arange(0, 40 * LEAST_RUN + 1, 100)
    idents = map_families(lambda *_: threading.get_ident(), start, workers=2)
    assert threading.get_ident() not in idents


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_error_is_raised_here(workers):
    start = np.arange(0, 40 * LEAST_RUN + 1, 100)

    def fail(first: int, last: int) -> None:
        if last == start.size - 1:
            raise ZeroDivisionError(first)

    with pytest.raises(ZeroDivisionError):
        map_families(fail, start, workers)


def test_no_workers():
    assert available_workers() >= 1
    with pytest.raises(StructureError, match="0 workers"):
        map_families(lambda *_: None, np.array([0, 1]), workers=0)
