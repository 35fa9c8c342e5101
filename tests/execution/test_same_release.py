"""Estimates of a whole release are the same bytes, whichever executor makes them."""

import pytest
from typer.testing import CliRunner

from kept_runs import unpack
from trellis.cli.app import app
from trellis.execution.executor import using
from trellis.execution.processes import Processes
from trellis.execution.threads import Threads

METHODS = [
    ("counts", "gls_topdown"),
    ("counts", "gls"),
    ("histogram", "gls_topdown"),
    ("histogram", "topdown"),
    ("used_histogram", "topdown"),
    ("group_sizes", "cumulative_joint"),
    ("flows", "chebyshev"),
    ("flows", "gls_sparse"),
]


class Counting(Processes):
    """Tells how often work was sent."""

    sent = 0

    def _sent(self, value):
        self.sent += 1
        return super()._sent(value)


def estimated(run, method, out, executor):
    with using(executor):
        done = CliRunner().invoke(
            app, ["estimate", str(run), "--method", method, "--out", str(out)]
        )
    assert done.exit_code == 0, done.output
    made = [path for part in ("estimates", "release") for path in (out / part).rglob("*")]
    return {path.relative_to(out): path.read_bytes() for path in made if path.is_file()}


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_threads_and_processes_estimate_the_same_bytes(tmp_path, kind, method):
    run = unpack(kind, tmp_path)
    loop = estimated(run, method, tmp_path / "loop", Threads(1))
    threads = estimated(run, method, tmp_path / "threads", Threads(2))
    processes = Counting(2, least_run=1)
    travelled = estimated(run, method, tmp_path / "processes", processes)
    assert processes.sent
    assert len(loop) > 4
    assert threads == loop
    assert travelled == loop
