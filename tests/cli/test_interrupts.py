"""Ctrl-C ends a command within seconds, with one line and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

import trellis
from histogram_release_worlds import write_histogram_world
from trellis.cli.commands.run import COMPILING
from trellis.cli.interrupts import STOPPED

GENEROUS = 15
"""Seconds: not a bound of performance, only far from the minutes that it took."""

# Tests in the background have SIGINT ignored, and their children inherit that.
BEGIN = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
RUN = BEGIN + "from trellis.cli import main\nmain()\n"
WORK = (
    BEGIN
    + """
import ctypes, hashlib, os, sys, time
from threading import Timer
import numpy as np
from trellis.cli.interrupts import end_in_time, stopped

def long():  # in C, without the lock of the interpreter, deaf to signals
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)

def in_the_main_thread():
    long()

def in_threads():
    from trellis.execution.threads import map_families
    start = np.arange(200_000)
    map_families(lambda first, last: long(), start, workers=2)

def in_a_callback():
    callback = ctypes.CFUNCTYPE(None)(lambda: time.sleep(600))
    ctypes.CFUNCTYPE(None)(ctypes.cast(callback, ctypes.c_void_p).value)()
    time.sleep(600)

def in_a_query():
    import pyarrow as pa
    from trellis.ingest.engines import open_source
    with open_source(pa.table({"place": ["a1"]})) as reader:
        reader.query("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")

def in_a_program():
    from scipy.optimize import LinearConstraint, milp
    rows = np.random.default_rng(1).integers(0, 100, (6, 50))  # a market split: hard for anyone
    half = rows.sum(axis=1) // 2
    milp(np.zeros(50), constraints=LinearConstraint(rows, half, half), integrality=np.ones(50),
         bounds=(0, 1))

def in_swallowing_code():
    for _ in range(100):
        try:
            time.sleep(10)
        except BaseException:
            pass

work, seconds = sys.argv[1:]
end_in_time(float(seconds))
print("ready", flush=True)
try:
    globals()[work]()
except KeyboardInterrupt:
    print(stopped(), file=sys.stderr)
    sys.exit(130)
"""
)


class Started:
    """A process that is interrupted, and how it ends."""

    def __init__(self, script: str, *arguments: object, **environment: str) -> None:
        path = str(Path(trellis.__file__).parent.parent)
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-c", script, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": path} | environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_for(self, line: str) -> None:
        assert self._process.stdout is not None
        said = iter(self._process.stdout.readline, "")
        assert any(line in words for words in said), self._process.communicate()[1]

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        begin = monotonic()
        try:
            words = self._process.communicate(timeout=GENEROUS)[1]
        finally:
            self._process.kill()
        assert monotonic() - begin < GENEROUS
        return self._process.returncode, words


@pytest.mark.parametrize(
    "work",
    ["in_the_main_thread", "in_threads", "in_a_callback", "in_a_query", "in_a_program",
     "in_swallowing_code"],
)  # fmt: skip
def test_whatever_is_under_way_is_left(work):
    process = Started(WORK, work, 0.3)
    process.wait_for("ready")
    sleep(0.5)  # until it is under way; an interrupt before that ends it too
    process.interrupt()
    assert process.end() == (130, f"{STOPPED}\n")


def test_a_second_interrupt_ends_at_once():
    process = Started(WORK, "in_the_main_thread", 600)
    process.wait_for("ready")
    sleep(0.5)
    process.interrupt()
    sleep(0.2)
    process.interrupt()
    assert process.end() == (130, f"{STOPPED}\n")


def test_a_job_in_the_background_is_not_interrupted():
    ignoring = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    script = ignoring + "from trellis.cli.interrupts import end_in_time\nend_in_time(0.1)\n"
    process = Started(script + "print('ready')\nimport time\ntime.sleep(0.7)")
    process.wait_for("ready")
    process.interrupt()
    assert process.end() == (0, "")


@pytest.mark.parametrize("later", [0.0, 1.0])
def test_the_first_compilation_is_announced_and_left(tmp_path, later):
    """Compilers call back into Python, where an interrupt that is raised gets lost."""
    spec = write_histogram_world(tmp_path / "world")
    process = Started(RUN, "run", spec, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    process.wait_for(COMPILING)
    sleep(later)
    process.interrupt()
    code, words = process.end()
    assert code == 130
    assert words.splitlines()[-1] == STOPPED
    assert words.count(STOPPED) == 1
    assert "Traceback" not in words
    assert "ignored" not in words
