"""Every executor gives what a plain loop gives, in order; and noise does not travel."""

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from executors import EXECUTORS
from seeded_bits import SeededBits
from trellis.errors import StructureError, TrellisError
from trellis.estimate import gls, project_l2_families
from trellis.execution.executor import in_threads, map_families, map_in_order, map_kernel, using
from trellis.execution.processes import Processes
from trellis.execution.progress import listening
from trellis.execution.shipping import read_value, write_value
from trellis.execution.tasks import Fill
from trellis.execution.threads import LEAST_RUN, Threads
from trellis.model import Hierarchy
from trellis.privacy.bits import OsRandom

START = np.concatenate([[0], np.cumsum(np.arange(1, 400) % 7 * (LEAST_RUN // 50))])
"""Row pointer of enough children for several runs, some families without any."""


@pytest.fixture(scope="module", params=EXECUTORS)
def executor(request):
    made = EXECUTORS[request.param]()
    yield made
    made.close()


@pytest.fixture
def chosen(executor):
    """The executor, within a test; its pool is kept for the next one."""
    from trellis.execution.executor import _executor

    token = _executor.set(executor)
    yield executor
    _executor.reset(token)


# -- tasks, which must be importable by other processes -------------------------------------------


@dataclass(frozen=True)
class Sums:
    values: np.ndarray

    def __call__(self, first, last):
        families = pairwise(START[first : last + 1])
        return [float(np.sum(self.values[begin:end])) for begin, end in families]


def fill_both(values, by_child, by_family, by_column, first, last):
    for family in range(first, last):
        children = slice(START[family], START[family + 1])
        by_child[children] += np.cumsum(values[children])
        by_family[family] = values[children].sum()
        by_column[:, family] = [family, by_child[children].sum()]


def fail_from(least, first, last):
    if last >= least:
        raise StructureError(f"Run {first} fails.")
    return first


def square(x):
    return x * x


def fail_at_three(x):
    if x == 3:
        raise StructureError("three")
    return x


def process_and_run(first, last):
    return os.getpid(), first, last


def die(_first, _last):
    os._exit(3)


def whether_written(values, _first, _last):
    values[:] = 7.0
    return bool((values == 7.0).all())


# -- the two verbs --------------------------------------------------------------------------------


def test_families_give_what_a_loop_gives(chosen):
    values = np.random.default_rng(0).normal(size=START[-1])
    found = [total for run in map_families(Sums(values), START) for total in run]
    assert found == Sums(values)(0, START.size - 1)


def test_arrays_are_filled_as_by_a_loop(chosen):
    rng = np.random.default_rng(1)
    values, before = rng.normal(size=START[-1]), rng.normal(size=START[-1])

    def filled():
        return before.copy(), np.empty(START.size - 1), np.empty((2, START.size - 1))

    plain, found = filled(), filled()
    fill_both(values, *plain, 0, START.size - 1)
    fills = [Fill(found[0], START), Fill(found[1]), Fill(found[2], axis=1)]
    map_families(partial(fill_both, values), START, fills)
    for one, other in zip(found, plain, strict=True):
        assert one.tobytes() == other.tobytes()


def test_kernels_fill_by_family_or_by_child(chosen):
    paths = [(str(i // 100), str(i)) for i in range(3000)]
    tree = Hierarchy.from_paths([("r", *path) for path in paths])
    rng = np.random.default_rng(2)
    noisy = [rng.normal(size=(n, 2)) for n in tree.sizes]
    estimates, variances = gls(tree, noisy, [1.0, 2.0, 3.0])
    plain, plain_variances = gls(tree, noisy, [1.0, 2.0, 3.0], workers=1)
    for a, b in zip([*estimates, *variances], [*plain, *plain_variances], strict=True):
        assert a.tobytes() == b.tobytes()


def test_compiled_projections(chosen):
    rng = np.random.default_rng(3)
    start = np.arange(0, 2 * LEAST_RUN + 1, 16)
    x, totals = rng.integers(-20, 50, start[-1]), rng.integers(0, 300, start.size - 1)
    found = project_l2_families(x, start, totals, tie_seed=4)
    assert (found == project_l2_families(x, start, totals, tie_seed=4, workers=1)).all()


def test_items_come_in_order(chosen):
    assert list(map_in_order(square, range(40))) == [x * x for x in range(40)]


def test_few_items_are_taken_ahead(chosen):
    taken = []

    def items():
        for x in range(1000):
            taken.append(x)
            yield x

    results = map_in_order(square, items())
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(taken) < 15
    results.close()


def test_the_first_error_is_raised_again(chosen):
    with pytest.raises(StructureError, match="Run 0 fails"):
        map_families(partial(fail_from, 0), START)
    with pytest.raises(StructureError, match="three"):
        list(map_in_order(fail_at_three, range(1000)))
    assert list(map_in_order(square, range(3))) == [0, 1, 4], "it goes on after an error"


def test_progress_is_told_here(chosen):
    told = []
    with listening(told.append):
        map_families(partial(fail_from, 10**9), START)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 1 or chosen == Threads(1)


def test_nothing_to_do(chosen):
    assert list(map_in_order(square, [])) == []
    assert map_families(Sums(np.empty(0)), np.array([0])) == []


# -- which executor it is -------------------------------------------------------------------------


def test_threads_unless_another_is_chosen():
    here = os.getpid()
    assert {pid for pid, *_ in map_families(process_and_run, START)} == {here}
    with using(Processes(2, least_run=1)):
        assert here not in {pid for pid, *_ in map_families(process_and_run, START)}
        with in_threads(2):
            assert {pid for pid, *_ in map_families(process_and_run, START)} == {here}
        with in_threads(None):
            assert here not in {pid for pid, *_ in map_families(process_and_run, START)}
    assert {pid for pid, *_ in map_families(process_and_run, START)} == {here}


def test_small_work_stays_here():
    with using(Processes(2)):
        (run,) = map_families(process_and_run, np.array([0, 10, 20]))
    assert run == (os.getpid(), 0, 2)


# -- processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [SeededBits(1), OsRandom()], ids=["seeded", "os"])
def test_random_bits_do_not_travel(bits):
    with using(Processes(2, least_run=1)):
        with pytest.raises(StructureError, match="holds random bits"):
            map_families(partial(fail_from, bits), START)
        with pytest.raises(StructureError, match="holds random bits"):
            list(map_in_order(square, [bits]))
        with pytest.raises(StructureError, match="holds random bits"):
            map_families(Sums({"deep": [bits]}), START)


def test_closures_do_not_travel():
    with using(Processes(2, least_run=1)), pytest.raises((pickle.PicklingError, AttributeError)):
        map_families(lambda first, last: START[first], START)


def test_what_a_process_writes_elsewhere_is_its_own():
    values = np.zeros(5)
    with using(Processes(2, least_run=1)):
        assert all(map_families(partial(whether_written, values), START))
    assert not values.any()


def test_a_process_that_dies_is_told():
    with (
        using(Processes(2, least_run=1)),
        pytest.raises(TrellisError, match="ended before its work was done"),
    ):
        map_families(die, START)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(active_children())
    with using(Processes(2, least_run=1)):
        map_families(process_and_run, START)
        assert len(list(tmp_path.rglob("*.task"))) == 0
        assert set(active_children()) - before
    assert not set(active_children()) - before
    assert not list(tmp_path.iterdir())


def test_arrays_are_read_as_they_were_written(tmp_path):
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    value = {"a": np.arange(10).reshape(2, 5).T, "b": fixed, "c": np.empty((0, 3)), "d": "text"}
    write_value(tmp_path / "x", value)
    read = read_value(tmp_path / "x")
    for name in "abc":
        assert (read[name] == value[name]).all()
        assert read[name].shape == value[name].shape
        assert read[name].flags.writeable == value[name].flags.writeable
    assert read["d"] == "text"


INTERRUPTED = """
import os, signal, time
from threading import Timer
import numpy as np
from trellis.execution.executor import map_families, using
from trellis.execution.processes import Processes

def long(first, last):
    time.sleep(600)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with using(Processes(2, least_run=1)):
            map_families(long, np.arange(100))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_an_interrupt_ends_all_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "interrupted\n"
    assert done.stderr == ""


ABANDONED = INTERRUPTED.replace(
    "Timer(2.0, os.kill", "print(os.getpid(), flush=True); Timer(99, os.kill"
)


def test_processes_do_not_outlive_their_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        ABANDONED.replace("time.sleep(600)", "print(os.getpid(), flush=True)\n    time.sleep(600)")
    )
    started = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    parent, *children = (int(started.stdout.readline()) for _ in range(3))
    os.kill(parent, signal.SIGKILL)
    started.wait()
    started.stdout.close()
    deadline = time.monotonic() + 20
    while any(is_running(child) for child in children):
        assert time.monotonic() < deadline, "a process outlives its parent"
        time.sleep(0.1)


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    except FileNotFoundError:
        return False


def test_kernels_without_arrays(chosen):
    assert map_kernel(partial(fail_from, 10**9), np.array([0, 1])) == [0]
